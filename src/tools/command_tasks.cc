#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/model/load_model.h"
#include "ir/text.h"
#include "search/kernel_class.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/options.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct TasksOptions {
  ModelOptions model;
  std::vector<std::string> more;  // further models
  bool json = false;
  bool text = false;
};

std::string class_of(const graph::Task& task) {
  return search::kernel_class_text(search::kernel_class(task.workload));
}

// Returns the element type and the extents of the axes of each operation, inputs included.
nlohmann::json shapes_json(const ir::Workload& workload) {
  nlohmann::json shapes = nlohmann::json::array();
  for (const auto& op : workload.operations) {
    nlohmann::json entry = {{"operation", op->name},
                            {"dtype", ir::to_string(op->output()->dtype)},
                            {"spatial", nlohmann::json::array()}};
    for (const auto& axis : op->spatial) entry["spatial"].push_back(axis.extent);
    for (const auto& axis : op->reduce) entry["reduce"].push_back(axis.extent);
    if (op->is_placeholder()) entry["constant"] = op->is_constant;
    shapes.push_back(std::move(entry));
  }
  return shapes;
}

nlohmann::json task_json(const graph::Task& task, bool text) {
  nlohmann::json entry = {{"name", task.name},       {"key", task.key},
                          {"class", class_of(task)}, {"flops", task.flops},
                          {"nodes", task.nodes},     {"shapes", shapes_json(task.workload)}};
  if (text) entry["workload"] = ir::print(task.workload);
  return entry;
}

// Returns the first shapes of a list, "(1x64x56x56, 64x64x3x3)".
std::string inputs_text(const engine::InputShapes& shapes) {
  constexpr size_t kShown = 3;
  std::string text = "(";
  for (size_t i = 0; i < std::min(shapes.size(), kShown); ++i)
    text += (i > 0 ? ", " : "") + graph::shape_text(shapes[i]);
  if (shapes.size() > kShown) text += fmt::format(", {} more", shapes.size() - kShown);
  return text + ")";
}

constexpr const char* kLegend =
    "inputs: shapes of the task's inputs, weights included\n"
    "class: the task's operators in their order; schedules can be adapted to other tasks of the class\n"
    "key: identifies the task in databases and for the option --task\n";

void print_workload(const graph::Task& task, int calls) {
  print_out("# {} (key {}, {} calls)\n", task.name, task.key, calls);
  print_lines(ir::print(task.workload) + "\n");
}

// Prints the tasks of several models, deduplicated.
Status shared_tasks(const TasksOptions& options) {
  if (!options.model.shapes.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--shape " + options.model.shapes[0],
                 "does not say which of the models it belongs to; use --shape with one model only"};
  }
  TS_ASSIGN_OR_RETURN(engine::ModelSource first, options.model.source());
  std::vector<engine::ModelSource> models = {first};
  for (const std::string& path : options.more) {
    models.push_back(first);
    models.back().path = path;
  }
  TS_ASSIGN_OR_RETURN(const std::vector<engine::SharedTask> tasks, engine::load_tasks(models));
  nlohmann::json list = nlohmann::json::array();
  Table table({"task", "models", "calls", "FLOPs per call", "inputs", "class", "key"});
  size_t of_models = 0;
  for (const auto& [task, model_calls, inputs] : tasks) {
    int calls = 0;
    nlohmann::json by_model = nlohmann::json::object();
    for (const auto& [model, n] : model_calls) {
      calls += n;
      by_model[model] = n;
    }
    of_models += model_calls.size();
    if (options.json) {
      list.push_back(task_json(task, options.text));
      list.back()["calls"] = std::move(by_model);
    } else if (options.text) {
      print_workload(task, calls);
    }
    table.add({task.name, std::to_string(model_calls.size()), std::to_string(calls), format_flops(task.flops),
               inputs_text(inputs), class_of(task), task.key});
  }
  if (options.json) {
    print_json(nlohmann::json{{"tasks", list}}, 2);
  } else if (!options.text) {
    print_lines(table.text() + kLegend);
    print_out("{0} different tasks; counted for each model separately, the {2} models have {1} tasks\n",
              tasks.size(), of_models, models.size());
  }
  return {};
}

Status tasks(const TasksOptions& options) {
  if (!options.more.empty()) return shared_tasks(options);
  TS_ASSIGN_OR_RETURN(const engine::LoadedModel model, options.model.load());
  double total = 0;
  for (const auto& task : model.partition.tasks) total += task.flops * task.calls;
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& task : model.partition.tasks) {
      list.push_back(task_json(task, options.text));
      list.back()["calls"] = task.calls;
    }
    print_json(nlohmann::json{{"model", model.graph.name},
                              {"flops", total},
                              {"kernel_calls", model.partition.calls.size()},
                              {"arena_bytes", model.memory.arena_bytes},
                              {"tasks", list}},
               2);
    return {};
  }
  if (options.text) {
    for (const auto& task : model.partition.tasks) {
      print_workload(task, task.calls);
    }
    return {};
  }
  Table table({"task", "calls", "FLOPs per call", "share of FLOPs", "inputs", "class", "key"});
  const std::vector<engine::InputShapes> inputs = engine::input_shapes(model);
  for (size_t t = 0; t < inputs.size(); ++t) {
    const graph::Task& task = model.partition.tasks[t];
    table.add({task.name, std::to_string(task.calls), format_flops(task.flops),
               fmt::format("{:.1f} %", total > 0 ? 100 * task.flops * task.calls / total : 0),
               inputs_text(inputs[t]), class_of(task), task.key});
  }
  print_lines(table.text() + kLegend);
  print_out("{} tasks, {} kernel calls, {} per run, {} of working memory\n", model.partition.tasks.size(),
            model.partition.calls.size(), format_flops(total), format_bytes(model.memory.arena_bytes));
  return {};
}

}  // namespace

void add_tasks_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TasksOptions>();
  CLI::App* command =
      app.add_subcommand("tasks", "Show the tasks of models: the tensor programs that are tuned");
  options->model.add_to(*command);
  command->add_option("more", options->more, "More models. A task that several of them have is shown once");
  command->add_flag("--text", options->text, "Print the tensor expressions of each task");
  command->add_flag("--json", options->json, "Print the tasks as JSON");
  command->callback([options, &exit_code] { exit_code = run_command([&] { return tasks(*options); }); });
}

}  // namespace tensorsmith::tools
