#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ir/text.h"
#include "tools/commands.h"
#include "tools/model_pipeline.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct TasksOptions {
  ModelOptions model;
  bool json = false;
  bool text = false;
};

Status tasks(const TasksOptions& options) {
  TS_ASSIGN_OR_RETURN(const LoadedModel model, load_model(options.model));
  double total = 0;
  for (const auto& task : model.partition.tasks) total += task.flops * task.calls;
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& task : model.partition.tasks) {
      nlohmann::json entry = {{"name", task.name},
                              {"key", task.key},
                              {"calls", task.calls},
                              {"flops", task.flops},
                              {"nodes", task.nodes}};
      if (options.text) entry["workload"] = ir::print(task.workload);
      list.push_back(std::move(entry));
    }
    fmt::print("{}\n", nlohmann::json{{"model", model.graph.name},
                                      {"flops", total},
                                      {"kernel_calls", model.partition.calls.size()},
                                      {"arena_bytes", model.memory.arena_bytes},
                                      {"tasks", list}}
                           .dump(2));
    return {};
  }
  if (options.text) {
    for (const auto& task : model.partition.tasks) {
      fmt::print("# {} (key {}, {} calls)\n{}\n", task.name, task.key, task.calls, ir::print(task.workload));
    }
    return {};
  }
  Table table({"task", "calls", "work a call", "share", "key"});
  for (const auto& task : model.partition.tasks) {
    table.add({task.name, std::to_string(task.calls), format_flops(task.flops),
               fmt::format("{:.1f} %", total > 0 ? 100 * task.flops * task.calls / total : 0), task.key});
  }
  fmt::print("{}{} tasks, {} kernel calls, {} a run, {} working memory\n", table.text(),
             model.partition.tasks.size(), model.partition.calls.size(), format_flops(total),
             format_bytes(static_cast<double>(model.memory.arena_bytes)));
  return {};
}

}  // namespace

void add_tasks_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TasksOptions>();
  CLI::App* command = app.add_subcommand("tasks", "Show the tensor programs that a model is made of");
  options->model.add_to(*command);
  command->add_flag("--text", options->text, "Print each task as tensor expressions");
  command->add_flag("--json", options->json, "Machine-readable output");
  command->callback([options, &exit_code] { exit_code = run_command([&] { return tasks(*options); }); });
}

}  // namespace tensorsmith::tools
