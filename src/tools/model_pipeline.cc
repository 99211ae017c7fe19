#include "tools/model_pipeline.h"

#include <map>

#include "graph/zoo/zoo.h"

namespace tensorsmith::tools {

Result<graph::Graph> import_model(const ModelOptions& options) {
  constexpr std::string_view kZoo = "zoo:";
  graph::ImportOptions import_options;
  TS_ASSIGN_OR_RETURN(import_options.shapes, options.parsed_shapes());
  import_options.absent.insert(options.absent.begin(), options.absent.end());
  import_options.bounded = options.bounded;
  if (!options.path.starts_with(kZoo)) return graph::import_onnx(options.path, import_options);
  if (!options.shapes.empty() || !options.absent.empty()) {
    return Error{
        ErrorCode::kInvalidArgument,
        options.shapes.empty() ? "--absent " + options.absent[0] : "--shape " + options.shapes[0],
        "networks of the zoo take batch=B, size=S and sequence=L instead, as in zoo:resnet50:batch=4"};
  }
  TS_ASSIGN_OR_RETURN(const auto request,
                      graph::zoo::parse_request(std::string_view(options.path).substr(kZoo.size())));
  return graph::zoo::import(request);
}

Result<LoadedModel> load_model(const ModelOptions& options) {
  LoadedModel model;
  TS_ASSIGN_OR_RETURN(model.graph, import_model(options));
  TS_RETURN_IF_ERROR(graph::optimize(model.graph));
  TS_ASSIGN_OR_RETURN(model.partition, graph::partition(model.graph));
  model.memory = graph::plan_memory(model.graph, model.partition);
  return model;
}

Result<std::vector<SharedTask>> load_tasks(const std::vector<ModelOptions>& models) {
  std::vector<SharedTask> tasks;
  std::map<std::string, size_t> known;  // by key
  for (const ModelOptions& options : models) {
    TS_ASSIGN_OR_RETURN(LoadedModel model, load_model(options));
    for (graph::Task& task : model.partition.tasks) {
      const int calls = task.calls;
      const auto [at, fresh] = known.emplace(task.key, tasks.size());
      if (fresh) tasks.push_back({std::move(task), {}});
      tasks[at->second].calls.emplace_back(options.path, calls);
    }
  }
  return tasks;
}

}  // namespace tensorsmith::tools
