// `dataset next`: chooses the tasks to measure next on a device.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "engine/device/gpu_device.h"
#include "engine/device/measured_device.h"
#include "lab/kinds/kinds.h"
#include "lab/next_tasks.h"
#include "learn/latency/held_out.h"
#include "record/database.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct NextCommand {
  std::string model, device = "local", store, split, database;
  std::vector<std::string> networks;
  int tasks = 5;
  uint64_t seed = 0;
  bool json = false;
};

// Returns the keys of the tasks for which the database has times on the device.
Result<std::set<std::string>> measured_tasks(const std::string& path, const target::Device& device) {
  std::set<std::string> out;
  TS_ASSIGN_OR_RETURN(const auto database, record::Database::open_read_only(path));
  TS_RETURN_IF_ERROR(database->for_each([&](const record::Record& record) -> Status {
    if (record.result.ok() && record.device_key == device.key()) out.insert(record.task_key);
    return {};
  }));
  return out;
}

Result<lab::NextTasks> choose(const NextCommand& command, const learn::CostModel& model,
                              const target::Device& device) {
  const size_t count = command.tasks;
  if (!command.store.empty()) {
    TS_ASSIGN_OR_RETURN(const auto data, engine::ModelData::open(command.store));
    if (command.split.empty()) return lab::next_tasks(data, nullptr, model, device, command.seed, count);
    TS_ASSIGN_OR_RETURN(const auto split, data.load_split(command.split));
    return lab::next_tasks(data, &split, model, device, command.seed, count);
  }
  std::vector<engine::ModelSource> networks;
  for (const ModelOptions& network : models_of_networks(command.networks)) {
    TS_ASSIGN_OR_RETURN(networks.emplace_back(), network.source());
  }
  std::set<std::string> measured;
  if (!command.database.empty()) {
    TS_ASSIGN_OR_RETURN(measured, measured_tasks(command.database, device));
  }
  return lab::next_tasks(networks, measured, model, engine::with_measurements(device), command.seed, count);
}

// Prints the commands that measure the tasks and train the model on them.
void print_commands(const NextCommand& command, const target::Device& device, const lab::NextTasks& next) {
  if (!command.store.empty()) {
    print_out(
        "measure programs of these tasks on the device, import them together with the store's records, and "
        "continue with `tensorsmith train --init {}`\n",
        command.model);
    return;
  }
  std::string line = "tensorsmith dataset collect --networks";
  for (const std::string& network : command.networks) line += " " + network;
  for (const auto& task : next.chosen) line += " --task " + task.key;
  const std::string database = command.database.empty() ? "measured.db" : command.database;
  const bool here = engine::is_measurable(device);
  print_out(
      "measure these tasks{} and fine-tune the model:\n  {} --device {} -o {}\n  tensorsmith train --init {} "
      "--from-db {} -o next.model\n",
      here ? "" : " on that machine", line, here ? command.device : "local", database, command.model,
      database);
}

Status next(const NextCommand& command) {
  if (command.store.empty() == command.networks.empty())
    return Error{ErrorCode::kInvalidArgument, "dataset next", "needs either --store or --networks"};
  TS_ASSIGN_OR_RETURN(const auto model, lab::cost_model_kinds().load(command.model));
  TS_ASSIGN_OR_RETURN(const target::Device device, engine::find_device(command.device));
  TS_RETURN_IF_ERROR(learn::check_knows(model->card(), command.model, device));
  TS_ASSIGN_OR_RETURN(const auto found, choose(command, *model, device));
  if (command.json) {
    nlohmann::json tasks = nlohmann::json::array();
    for (const auto& task : found.chosen)
      tasks.push_back({{"key", task.key},
                       {"name", task.name},
                       {"programs", task.programs},
                       {"uncertainty", task.uncertainty}});
    print_json(
        nlohmann::json{{"measured", found.measured}, {"candidates", found.candidates}, {"tasks", tasks}});
    return {};
  }
  Table table({"measure next", "task", "programs known", "uncertainty"});
  for (const auto& task : found.chosen)
    table.add({task.key, task.name, std::to_string(task.programs),
               task.uncertainty > 0 ? fmt::format("{:.3f}", task.uncertainty) : "-"});
  print_lines(table.text());
  print_out("{} of the {} tasks that are not measured on {} yet; {} tasks are measured already\n",
            found.chosen.size(), found.candidates, command.device, found.measured);
  print_commands(command, device, found);
  return {};
}

}  // namespace

void add_dataset_next_command(CLI::App& dataset, int& exit_code) {
  auto o = std::make_shared<NextCommand>();
  CLI::App* command = dataset.add_subcommand(
      "next", "Choose the tasks whose measurements on a device would improve a cost model most");
  command->add_option("--model", o->model, "Cost model to improve")->required();
  command->add_option("--device", o->device, "Device to measure on (see `tensorsmith devices list`)")
      ->capture_default_str();
  auto* store = command->add_option(
      "--store", o->store,
      "Choose among the tasks of this store; tasks with times on the device count as measured");
  command
      ->add_option(
          "--split", o->split,
          "With --store: only tasks in the training and validation parts of this split count as measured")
      ->needs(store);
  auto* networks =
      command
          ->add_option(
              "--networks", o->networks,
              "Choose among the tasks of these networks (named as for `dataset collect`) instead of a store")
          ->excludes(store);
  command
      ->add_option("--from-db", o->database,
                   "Record database; tasks for which it has times on the device count as measured")
      ->needs(networks);
  add_whole(
      *command, "--tasks", o->tasks, 1, 1000000,
      "Number of tasks to choose; asking for one at a time and training in between gives the best choice");
  add_seed(*command, o->seed, "Seed of the random programs that represent a task");
  command->add_flag("--json", o->json, "Print the result as JSON on standard output");
  command->callback([o, &exit_code] { exit_code = run_command([&] { return next(*o); }); });
}

}  // namespace tensorsmith::tools
