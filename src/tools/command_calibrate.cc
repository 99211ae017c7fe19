#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/predict/model_data.h"
#include "lab/kinds/kinds.h"
#include "learn/latency/held_out.h"
#include "learn/latency/model_file.h"
#include "learn/latency/queries.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct CalibrateCommand {
  std::string model, store, from, output;
  std::vector<std::string> devices;
  int max_records = learn::kHeldOutRecords;
  uint64_t seed = 0;
  bool own_loops = false, shift = false, force = false, json = false;
};

// Returns a command line with all options that determine the widths, for reproduction.
std::string command_line(const CalibrateCommand& c) {
  std::string out = "tensorsmith calibrate --store " + std::filesystem::path(c.store).filename().string();
  for (const std::string& device : c.devices) out += " --devices " + device;
  if (c.own_loops) out += " --own-loops";
  if (c.shift) out += " --shift";
  if (c.max_records != learn::kHeldOutRecords) out += " --max-records " + std::to_string(c.max_records);
  if (c.seed != 0) out += " --seed " + std::to_string(c.seed);
  return out;
}

// Takes over the held-out-device errors of another training with the same recipe on the same store.
Status take_over(const CalibrateCommand& command, learn::ModelFile& file) {
  TS_ASSIGN_OR_RETURN(const learn::ModelFile from, learn::read_model_file(command.from));
  if (from.card.kind != file.card.kind || from.card.store_hash != file.card.store_hash ||
      from.card.devices != file.card.devices)
    return Error{ErrorCode::kMismatch, command.from,
                 "differs in kind, training store or training devices from " + command.model};
  file.card.seen = from.card.seen;
  file.card.new_device = from.card.new_device;
  file.card.new_kind = from.card.new_kind;
  return learn::write_model_file(file, command.output);
}

Status calibrate(const CalibrateCommand& command) {
  TS_RETURN_IF_ERROR(check_outputs(
      {{"--output", command.output, OutputKind::kLatencyModel}},
      {{"--model", command.model}, {"--store", command.store}, {"--from", command.from}}, command.force));
  TS_ASSIGN_OR_RETURN(learn::ModelFile file, learn::read_model_file(command.model));
  if (!command.from.empty()) return take_over(command, file);
  TS_ASSIGN_OR_RETURN(const auto model, lab::cost_model_kinds().load(command.model));
  if (model->ranks_only())
    return Error{ErrorCode::kInvalidArgument, command.model,
                 "only ranks programs; it predicts no seconds whose errors could be measured"};
  TS_ASSIGN_OR_RETURN(const engine::ModelData data, engine::ModelData::open(command.store));
  std::vector<int64_t> records(data.store().size());
  for (size_t i = 0; i < records.size(); ++i) records[i] = i;
  if (!command.devices.empty()) {
    TS_ASSIGN_OR_RETURN(const auto names, data.store_names(command.devices));
    records = learn::records_of_devices(data.store(), records, names);
  }
  TS_ASSIGN_OR_RETURN(const auto errors,
                      learn::unseen_device_errors(*model, data.store(), data.devices(), records,
                                                  command.max_records, command.seed, command.own_loops));
  if (errors.empty())
    return Error{ErrorCode::kInvalidArgument, command.store,
                 "has no suitable measured program: its device must be one that the model was not trained "
                 "on, and the model must know its kind of program"};
  nlohmann::json report = nlohmann::json::object();
  for (size_t kind = 0; kind < 2; ++kind) {
    std::vector<learn::DeviceErrors> of_kind;
    std::string names;
    for (const learn::DeviceErrors& e : errors) {
      if (static_cast<size_t>(e.kind) != kind) continue;
      of_kind.push_back(e);
      names += (names.empty() ? "" : ", ") + e.device;
    }
    if (of_kind.empty()) continue;
    const learn::HeldOutError found =
        learn::held_out_error(of_kind, command.shift, 1, names + " by " + command_line(command));
    file.card.new_device[kind] = found;
    report[kind == 0 ? "cpu" : "gpu"] = {{"shift", found.shift},     {"log_sigma", found.log_sigma},
                                         {"log_90", found.log_90},   {"log_95", found.log_95},
                                         {"records", found.records}, {"devices", names}};
    if (!command.json)
      print_out(
          "{}: {} records; the predictions are corrected by a factor of {:.2f}; after that, measured and "
          "predicted times differ by a factor of at most {:.2f} for 68 % of the records, {:.2f} for 90 % and "
          "{:.2f} for 95 %\n",
          names, found.records, std::exp(found.shift), std::exp(found.log_sigma), std::exp(found.log_90),
          std::exp(found.log_95));
  }
  TS_RETURN_IF_ERROR(learn::write_model_file(file, command.output));
  if (command.json) print_json(report);
  return {};
}

}  // namespace

void add_calibrate_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<CalibrateCommand>();
  CLI::App* sub = app.add_subcommand("calibrate",
                                     "Measure a cost model's errors on devices that it was not trained on, "
                                     "and store them in a copy of the model");
  sub->add_option("--model", o->model, "File of the cost model")->required();
  auto* store =
      sub->add_option("--store", o->store, "Store of measured programs (see `tensorsmith dataset`)");
  auto* from = sub->add_option("--from", o->from,
                               "Copy the errors from the file of another model instead of measuring them; "
                               "that model must have the same kind, training store and training devices");
  store->excludes(from);
  sub->add_option("--devices", o->devices, "Use only the store's records of these devices (comma-separated)")
      ->delimiter(',');
  sub->add_flag(
      "--own-loops", o->own_loops,
      "Analyze the loops of programs that another compiler made (Ansor records) like those of Tensorsmith's "
      "own programs; needed for a model that was trained on Tensorsmith's own programs");
  sub->add_flag("--shift", o->shift,
                "Multiply later predictions for new devices by the median of measured / predicted time; "
                "without this option the predictions stay as they are");
  add_whole(*sub, "--max-records", o->max_records, 1, 1'000'000,
            "Largest number of programs to predict for each task; they are chosen at random");
  add_seed(*sub, o->seed, "Seed of the random choice of programs");
  sub->add_option(
         "-o,--output", o->output,
         "File for the copy of the model with the measured errors; an existing model file is replaced")
      ->required();
  add_force(*sub, o->force);
  sub->add_flag("--json", o->json, "Print the result as JSON on standard output");
  sub->callback([o, &exit_code] {
    if (o->store.empty() && o->from.empty()) throw CLI::RequiredError("--store or --from");
    exit_code = run_command([&] { return calibrate(*o); });
  });
}

}  // namespace tensorsmith::tools
