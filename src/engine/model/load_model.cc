#include "engine/model/load_model.h"

#include <algorithm>
#include <map>

#include "engine/model/quantization_step.h"
#include "graph/regions.h"
#include "graph/zoo/zoo.h"
#include "runtime/device/gpu.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::engine {

Result<graph::Graph> import_model(const ModelSource& source) {
  constexpr std::string_view kZoo = "zoo:";
  if (!source.path.starts_with(kZoo)) return graph::import_onnx(source.path, source.import);
  const graph::ImportOptions& import = source.import;
  if (!import.shapes.empty() || !import.dims.empty() || !import.absent.empty() || import.bounded) {
    const std::string given = !import.shapes.empty() ? "the shape of '" + import.shapes.begin()->first + "'"
                              : !import.dims.empty()
                                  ? "the length of dimension '" + import.dims.begin()->first + "'"
                              : !import.absent.empty() ? "the absent input '" + *import.absent.begin() + "'"
                                                       : std::string("a bound for numbers of rows");
    return Error{ErrorCode::kInvalidArgument, source.path,
                 given +
                     " can be given for ONNX files only; for a network of the zoo write batch=B, size=S or "
                     "sequence=L behind its name, as in zoo:resnet50:batch=4"};
  }
  TS_ASSIGN_OR_RETURN(const auto request,
                      graph::zoo::parse_request(std::string_view(source.path).substr(kZoo.size())));
  return graph::zoo::import(request);
}

Result<LoadedModel> prepare_model(graph::Graph graph, const graph::PartitionOptions& parts,
                                  const graph::OptimizeOptions& options) {
  LoadedModel model;
  model.graph = std::move(graph);
  model.quantization_steps = quantization_steps(model.graph);
  if (!parts.routines) TS_RETURN_IF_ERROR(graph::unroll_regions(model.graph, true));
  TS_RETURN_IF_ERROR(graph::optimize(model.graph, options));
  TS_ASSIGN_OR_RETURN(model.partition, graph::partition(model.graph, parts));
  model.memory = graph::plan_memory(model.graph, model.partition, parts.alignment);
  return model;
}

namespace {

Result<LoadedModel> load_with(const ModelSource& source, const graph::PartitionOptions& parts) {
  TS_ASSIGN_OR_RETURN(auto graph, import_model(source));
  graph::OptimizeOptions options;
  options.tf32 = source.tf32;
  return prepare_model(std::move(graph), parts, options);
}

}  // namespace

Result<LoadedModel> load_model(const ModelSource& source) {
  return load_with(source, {.routines = source.routines});
}

Result<LoadedModel> load_model(const ModelSource& source, const target::Device& device) {
  if (source.tf32 && !sched::has_mma(target::compute_capability(device), ir::DType::kF32, ir::DType::kF32))
    return Error{ErrorCode::kInvalidArgument, "tf32",
                 device.name + " does not support TF32; NVIDIA GPUs from sm_80 on do"};
  if (device.kind() == target::DeviceKind::kGpu)
    return load_with(source, {.alignment = runtime::kGpuOffsetAlignment, .routines = false});
  TS_ASSIGN_OR_RETURN(LoadedModel model, load_model(source));
  // Bytes of recently written data per core that are still in the caches, see docs/decisions/042.
  constexpr int64_t kBytesACore = int64_t{16} << 20;
  const int64_t last = std::max(device.l3_bytes, device.cpu().cores * device.l2_bytes);
  const int64_t parts =
      graph::parts_of_batch(model.graph, model.partition, std::min(last, device.cpu().cores * kBytesACore));
  if (graph::split_batch(model.graph, model.partition, parts))
    model.memory = graph::plan_memory(model.graph, model.partition);
  return model;
}

std::vector<InputShapes> input_shapes(const LoadedModel& model) {
  std::vector<InputShapes> shapes(model.partition.tasks.size());
  for (const graph::Call& call : model.partition.calls) {
    if (!call.task) continue;
    InputShapes& of_task = shapes[*call.task];
    if (!of_task.empty()) continue;
    for (const graph::ValueId value : call.inputs) of_task.push_back(model.graph.values[value].shape);
  }
  return shapes;
}

Result<std::vector<SharedTask>> load_tasks(const std::vector<ModelSource>& models) {
  std::vector<SharedTask> tasks;
  std::map<std::string, size_t> known;  // by key
  for (const ModelSource& source : models) {
    TS_ASSIGN_OR_RETURN(LoadedModel model, load_model(source));
    std::vector<InputShapes> inputs = input_shapes(model);
    for (size_t t = 0; t < model.partition.tasks.size(); ++t) {
      graph::Task& task = model.partition.tasks[t];
      const int calls = task.calls;
      const auto [at, fresh] = known.emplace(task.key, tasks.size());
      if (fresh) tasks.push_back({std::move(task), {}, std::move(inputs[t])});
      tasks[at->second].calls.emplace_back(source.path, calls);
    }
  }
  return tasks;
}

}  // namespace tensorsmith::engine
