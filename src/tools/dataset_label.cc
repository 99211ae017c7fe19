// `dataset label`: labels programs of other devices with the times that a model predicts for one
// device, to train another model on them.
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/device/gpu_device.h"
#include "lab/kinds/kinds.h"
#include "lab/label_programs.h"
#include "learn/latency/held_out.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/options.h"
#include "tools/output_files.h"

namespace tensorsmith::tools {
namespace {

struct LabelCommand {
  std::string store, model, device, split, output;
  bool json = false, force = false;
};

Result<lab::LabelledPrograms> label_store(const LabelCommand& command, const learn::CostModel& model,
                                          const target::Device& device) {
  TS_ASSIGN_OR_RETURN(const auto data, engine::ModelData::open(command.store));
  if (command.split.empty()) return lab::label_programs(data, nullptr, model, device, command.output);
  TS_ASSIGN_OR_RETURN(const auto split, data.load_split(command.split));
  return lab::label_programs(data, &split, model, device, command.output);
}

Status label(const LabelCommand& command) {
  TS_RETURN_IF_ERROR(check_outputs(
      {{"-o", command.output, OutputKind::kStore}},
      {{"STORE", command.store}, {"--model", command.model}, {"--split", command.split}}, command.force));
  TS_ASSIGN_OR_RETURN(const auto model, lab::cost_model_kinds().load(command.model));
  TS_ASSIGN_OR_RETURN(const target::Device device, engine::find_device(command.device));
  TS_RETURN_IF_ERROR(learn::check_knows(model->card(), command.model, device));
  TS_ASSIGN_OR_RETURN(const auto done, label_store(command, *model, device));
  if (command.json) {
    print_json(nlohmann::json{{"labelled", done.labelled},
                              {"measured", done.measured},
                              {"refused", done.refused},
                              {"unknown", done.unknown}});
  } else {
    print_out(
        "{0} programs with times that {1} predicts for {2}, and {3} programs with measured times, written to "
        "{5}; {4} programs left out\n",
        done.labelled, command.model, device.name, done.measured, done.refused + done.unknown,
        command.output);
  }
  return {};
}

}  // namespace

void add_dataset_label_command(CLI::App& dataset, int& exit_code) {
  auto o = std::make_shared<LabelCommand>();
  CLI::App* command = dataset.add_subcommand(
      "label",
      "Make a store with the times that a cost model predicts for a device, to train another model on");
  command->add_option("store", o->store, "Store of measured programs")->required();
  command
      ->add_option("--model", o->model,
                   "Cost model that predicts the times (the teacher); it must have been trained on the "
                   "device or on its kind, CPU or GPU")
      ->required();
  command
      ->add_option("--device", o->device, "Device to predict the times for (see `tensorsmith devices list`)")
      ->required();
  command->add_option("--split", o->split,
                      "Use only programs in the training and validation parts of this split");
  command->add_option("-o,--output", o->output, "File of the new store; an existing store is replaced")
      ->required();
  add_force(*command, o->force);
  command->add_flag("--json", o->json, "Print the result as JSON on standard output");
  command->callback([o, &exit_code] { exit_code = run_command([&] { return label(*o); }); });
}

}  // namespace tensorsmith::tools
