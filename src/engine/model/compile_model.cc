#include "engine/model/compile_model.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "base/scratch_directory.h"
#include "base/thread_pool.h"
#include "codegen/c/codegen.h"
#include "engine/model/c_model.h"
#include "lower/lower.h"
#include "runtime/device/gpu_platform.h"
#include "runtime/model_writer.h"
#include "runtime/tensorsmith.h"

namespace tensorsmith::engine {
namespace {

namespace fs = std::filesystem;

struct BuiltSchedule {
  std::shared_ptr<const codegen::BuiltKernel> task;
  double measured_seconds = 0;
};
using BuiltTasks = std::vector<BuiltSchedule>;

Result<BuiltTasks> build_tasks(const graph::Partition& partition, const target::Device& device,
                               const std::vector<TaskSchedule>& schedules, const CompileOptions& options,
                               KernelCache& cache) {
  const auto cancelled = [&] { return options.cancelled != nullptr && *options.cancelled; };
  BuiltTasks built(partition.tasks.size());
  std::mutex mutex;
  std::optional<Error> failure, first_replaced;
  size_t replaced = 0;
  for_each_index(options.jobs, built.size(), [&](size_t t) {
    if (cancelled()) return;
    const TaskSchedule* schedule = &schedules[t];
    auto result = cache.get(partition.tasks[t], t, schedule->trace, device);
    std::optional<Error> problem;
    if (!result.ok()) {
      problem = result.error();
      problem->place =
          "task " + partition.tasks[t].name + (problem->place.empty() ? "" : ", " + problem->place);
    }
    for (const TaskSchedule& other : schedules[t].otherwise) {
      if (result.ok()) break;
      schedule = &other;
      result = cache.get(partition.tasks[t], t, other.trace, device);
    }
    const std::lock_guard lock(mutex);
    if (result.ok()) {
      built[t] = {std::move(result).value(), schedule->measured_seconds};
      if (problem && replaced++ == 0) first_replaced = problem;
    } else if (!failure) {
      failure = problem;
    }
  });
  if (cancelled()) return Error{ErrorCode::kCancelled, options.directory, "interrupted, nothing was written"};
  if (failure) return *failure;
  if (replaced > 0 && options.log != nullptr) {
    options.log->log(
        LogLevel::kWarning,
        std::to_string(replaced) +
            " schedules cannot be built and are replaced by the next best ones; the first such error: " +
            first_replaced->message());
  }
  return built;
}

Result<const codegen::Backend*> backend_of(const CompileOptions& options, const target::Device& device) {
  if (options.backend != nullptr) return options.backend;
  return codegen::backend_for(device);
}

// Returns the architecture for the manifest. For a GPU it is that of the platform that runs the model.
std::string_view arch_of(const target::Device& device) {
  const runtime::GpuPlatform* platform = runtime::platform_of(device.arch);
  return platform != nullptr ? platform->archs.front() : std::string_view(device.arch);
}

runtime::TensorInfo tensor_info(const graph::Value& value) {
  runtime::TensorInfo info;
  info.name = value.name;
  info.dtype = value.dtype;
  info.shape = value.shape;
  return info;
}

int64_t bytes_of(const ir::Buffer& buffer) {
  return ir::bytes_of(buffer->dtype, buffer->allocation_elements());
}

// The constants of a model's calls; constants with equal bytes are stored once.
class WeightTable {
 public:
  explicit WeightTable(const graph::Graph& graph) : graph_(graph) {
    for (const graph::ValueId id : graph.values.ids())
      if (graph.values[id].constant) first_of_.emplace(graph.values[id].constant.get(), id);
  }

  int64_t add(WantedWeight wanted) {
    // Several values may be the same constant, for example by Identity nodes.
    wanted.value = first_of_.at(graph_.values[wanted.value].constant.get());
    const auto [it, added] = index_.emplace(wanted.key(), static_cast<int64_t>(wanted_.size()));
    if (added) wanted_.push_back(std::move(wanted));
    return it->second;
  }
  const std::vector<WantedWeight>& wanted() const { return wanted_; }

 private:
  std::vector<WantedWeight> wanted_;
  std::map<std::string, int64_t> index_;
  const graph::Graph& graph_;
  std::map<const lower::Tensor*, graph::ValueId> first_of_;  // the first value of each constant
};

// Returns the position of a value among the model's inputs or outputs.
int64_t position_of(const std::vector<graph::ValueId>& list, graph::ValueId storage,
                    const graph::Partition& partition) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (partition.storage_of[list[i]] == storage) return i;
  }
  return -1;
}

runtime::BufferRef locate(const LoadedModel& model, graph::ValueId id, int64_t bytes, WeightTable& weights) {
  const graph::ValueId storage = model.partition.storage_of[id];
  const int64_t place = model.partition.storage_offset[id];
  if (const int64_t i = position_of(model.graph.outputs, storage, model.partition); i >= 0) {
    return {runtime::BufferKind::kOutput, i, bytes, place};
  }
  if (const int64_t i = position_of(model.graph.inputs, storage, model.partition); i >= 0) {
    return {runtime::BufferKind::kInput, i, bytes, place};
  }
  // A body may read a constant as if it were none: a slice of it in each turn.
  if (const graph::Value& whole = model.graph.values[storage]; whole.constant)
    return {runtime::BufferKind::kWeight, weights.add({storage, nullptr, whole.shape}), bytes, place};
  const int64_t offset = model.memory.offset[id];
  TS_CHECK(offset >= 0, "value " + model.graph.values[id].name + " has no memory");
  return {runtime::BufferKind::kArena, offset, bytes};
}

// Returns the call of a routine, whose buffers are as in the graph.
Result<runtime::CallInfo> routine_info(const LoadedModel& model, const graph::Call& call,
                                       WeightTable& weights) {
  TS_ASSIGN_OR_RETURN(const runtime::RoutineDemands demands, runtime::demands_of(call.routine));
  runtime::CallInfo info;
  info.routine = call.routine;
  info.task = call.name;
  info.flops = demands.operations;
  info.shared_workspace_bytes = demands.shared_bytes;
  info.thread_workspace_bytes = demands.thread_bytes;
  info.outputs = static_cast<int64_t>(demands.outputs);
  std::vector<graph::ValueId> values = call.inputs;
  values.insert(values.end(), call.outputs.begin(), call.outputs.end());
  for (size_t i = 0; i < values.size(); ++i) {
    const graph::Value& value = model.graph.values[values[i]];
    if (value.constant) {
      const int64_t weight = weights.add({values[i], nullptr, value.shape});
      info.buffers.push_back({runtime::BufferKind::kWeight, weight, demands.buffer_bytes[i]});
      continue;
    }
    info.buffers.push_back(locate(model, values[i], demands.buffer_bytes[i], weights));
  }
  return info;
}

runtime::RegionInfo region_info(const LoadedModel& model, const graph::PlacedRegion& region,
                                WeightTable& weights) {
  runtime::RegionInfo info;
  info.begin = static_cast<int64_t>(region.begin);
  info.end = static_cast<int64_t>(region.end);
  info.turns = region.turns;
  info.until = region.until;
  if (region.count != graph::kNoValue) info.count = locate(model, region.count, sizeof(int64_t), weights);
  if (region.condition != graph::kNoValue)
    info.condition = locate(model, region.condition, sizeof(bool), weights);
  for (size_t c = region.begin; c < region.end; ++c) {
    std::vector<graph::ValueId> values = model.partition.calls[c].inputs;
    const auto& outputs = model.partition.calls[c].outputs;
    values.insert(values.end(), outputs.begin(), outputs.end());
    for (size_t b = 0; b < values.size(); ++b) {
      const auto moves = region.moves.find(values[b]);
      if (moves != region.moves.end())
        info.steps.push_back({static_cast<int64_t>(c), static_cast<int64_t>(b), moves->second});
    }
  }
  return info;
}

// A compiled model before its files are written.
struct AssembledModel {
  runtime::ModelDescription description;
  BuiltTasks built;
  std::vector<runtime::WeightData> weights;  // owned by the build cache
  std::vector<int64_t> module_begin;         // by task: index of its first kernel among all kernels
};

Result<AssembledModel> assemble(const LoadedModel& model, const target::Device& device,
                                const std::vector<TaskSchedule>& schedules, const CompileOptions& options,
                                BuildCache& cache) {
  const graph::Partition& partition = model.partition;
  TS_CHECK(schedules.size() == partition.tasks.size(), "there is not one schedule per task");
  AssembledModel out;
  TS_ASSIGN_OR_RETURN(out.built, build_tasks(partition, device, schedules, options, cache.kernels));

  int64_t begin = 0;
  for (const BuiltSchedule& task : out.built) {
    out.module_begin.push_back(begin);
    begin += static_cast<int64_t>(task.task->kernel.object.size());
  }

  runtime::ModelDescription& description = out.description;
  description.name = options.model_name;
  description.tool_version = ts_version();
  description.device = device.description.empty() ? device.name : device.description;
  description.arch = arch_of(device);
  // A process must request the AMX tile feature from the system, which may refuse, so models that
  // do not use it do not require it.
  const bool tiles =
      std::any_of(partition.calls.begin(), partition.calls.end(), [&](const graph::Call& call) {
        return call.task && out.built[*call.task].task->kernel.uses_matrix_units;
      });
  for (const auto& feature : device.features) {
    if (feature.empty() || feature[0] != '+' || (!tiles && feature.starts_with("+amx"))) continue;
    description.cpu_features.push_back(feature.substr(1));
  }
  description.threads = options.tuned ? device.compute_units() : 0;
  if (options.speedup) description.end_to_end = stored(*options.speedup);
  description.estimate = stored(options.estimate);
  for (graph::ValueId id : model.graph.inputs) {
    description.inputs.push_back(tensor_info(model.graph.values[id]));
  }
  for (size_t i = 0; i < model.graph.outputs.size(); ++i) {
    description.outputs.push_back(tensor_info(model.graph.values[model.graph.outputs[i]]));
    if (!model.quantization_steps.empty())
      description.outputs.back().quantization_step = model.quantization_steps[i];
  }
  description.arena_bytes = model.memory.arena_bytes;

  WeightTable weights(model.graph);
  for (const graph::Call& call : partition.calls) {
    if (!call.task) {
      TS_ASSIGN_OR_RETURN(runtime::CallInfo info, routine_info(model, call, weights));
      description.calls.push_back(std::move(info));
      continue;
    }
    const size_t t = *call.task;
    const codegen::BuiltKernel& task = *out.built[t].task;
    runtime::CallInfo info;
    info.symbol = task.kernel.symbol;
    info.shared_workspace_bytes = task.kernel.shared_workspace_bytes;
    info.thread_workspace_bytes = task.kernel.thread_workspace_bytes;
    info.launches = task.kernel.launches;
    info.module_begin = out.module_begin[t];
    info.module_bytes = info.launches.empty() ? 0 : task.kernel.object.size();
    info.task = partition.tasks[t].name;
    info.flops = partition.tasks[t].flops;
    info.measured_seconds = out.built[t].measured_seconds;
    const ir::Program& program = task.lowered.program;
    const std::vector<ir::Buffer> task_inputs = partition.tasks[t].workload.inputs();
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const int64_t bytes = bytes_of(program.inputs[i]);
      if (model.graph.values[call.inputs[i]].constant) {
        const lower::PreparedConstant* prepared = nullptr;
        for (const auto& constant : task.lowered.prepared) {
          if (constant.input == i) prepared = &constant;
        }
        const int64_t weight = weights.add({call.inputs[i], prepared, task_inputs[i]->shape});
        info.buffers.push_back({runtime::BufferKind::kWeight, weight, bytes});
      } else {
        info.buffers.push_back(locate(model, call.inputs[i], bytes, weights));
      }
    }
    info.outputs = call.outputs.size();
    for (size_t o = 0; o < call.outputs.size(); ++o) {
      info.buffers.push_back(locate(model, call.outputs[o], bytes_of(program.outputs[o]), weights));
    }
    description.calls.push_back(std::move(info));
  }
  for (const graph::PlacedRegion& region : partition.regions)
    description.regions.push_back(region_info(model, region, weights));

  TS_ASSIGN_OR_RETURN(const auto packed, cache.weights.get(model.graph, weights.wanted(), options.jobs));
  for (size_t w = 0; w < packed.size(); ++w) {
    const graph::ValueId value = weights.wanted()[w].value;
    out.weights.push_back({model.graph.values[value].name, packed[w]});
  }
  return out;
}

}  // namespace

Status check_output_directory(const std::string& directory, bool makes_parent) {
  if (directory.empty()) return Error{ErrorCode::kInvalidArgument, "-o", "needs the name of a directory"};
  TS_RETURN_IF_ERROR(runtime::check_replaceable(directory));
  std::error_code error;
  fs::path path = fs::absolute(directory, error).lexically_normal();
  if (error) return Error{ErrorCode::kIo, directory, "there is no current folder: " + error.message()};
  if (fs::is_symlink(path, error)) path = fs::canonical(path, error);
  fs::path parent = (path.has_filename() ? path : path.parent_path()).parent_path();
  // The parent is made together with the model, so that a run that fails before leaves no folder behind.
  if (makes_parent && !fs::exists(parent, error)) parent = parent.parent_path();
  switch (fs::status(parent, error).type()) {
    case fs::file_type::directory:
      break;
    case fs::file_type::not_found:
      return Error{ErrorCode::kNotFound, directory,
                   "the folder '" + parent.string() + "' does not exist; create it, or give -o another path"};
    case fs::file_type::none:
      return Error{ErrorCode::kIo, parent.string(), error.message() + "; give -o another path"};
    default:
      return Error{ErrorCode::kInvalidArgument, parent.string(), "is not a directory; give -o another path"};
  }
  if (const std::string why = why_not_writable(parent.string()); !why.empty())
    return Error{ErrorCode::kIo, parent.string(), why + "; give -o another path"};
  return {};
}

Status compile_model(const LoadedModel& model, const target::Device& device,
                     const std::vector<TaskSchedule>& schedules, const CompileOptions& options) {
  const bool as_c = !options.c_prefix.empty();
  if (as_c) TS_RETURN_IF_ERROR(check_c_directory(options.directory));
  const codegen::Backend* backend = &codegen::c_text_backend();
  if (!as_c) {
    TS_ASSIGN_OR_RETURN(backend, backend_of(options, device));
  }
  BuildCache own_cache(*backend, as_c ? options.c_prefix + "_task_" : "task_");
  TS_ASSIGN_OR_RETURN(AssembledModel assembled, assemble(model, device, schedules, options,
                                                         options.cache ? *options.cache : own_cache));
  std::vector<std::vector<char>> objects;
  for (const auto& task : assembled.built) objects.push_back(task.task->kernel.object);
  if (as_c) {
    std::vector<std::string> symbols;
    for (const auto& task : assembled.built) symbols.push_back(task.task->kernel.symbol);
    return write_c_model(options.directory, options.c_prefix, assembled.description, symbols, objects,
                         assembled.weights);
  }
  std::vector<char> library;  // empty if all calls are routines
  if (!objects.empty()) {
    TS_ASSIGN_OR_RETURN(library, backend->link(objects));
  }
  return runtime::write_model(options.directory, std::move(assembled.description),
                              std::span<const char>(library), assembled.weights);
}

Result<size_t> compile_recorded(const LoadedModel& model, const target::Device& device,
                                const std::string& database, const ScheduleOptions& allowed,
                                CompileOptions options) {
  TS_ASSIGN_OR_RETURN(auto schedules, default_schedules(model.partition, device, allowed));
  size_t found = 0;
  if (!database.empty()) {
    TS_ASSIGN_OR_RETURN(
        found, apply_best_records(model.partition, device, database, allowed, schedules, *options.log));
  }
  options.tuned = found > 0;
  TS_RETURN_IF_ERROR(compile_model(model, device, schedules, options));
  return found;
}

Result<ModelInMemory> compile_in_memory(const LoadedModel& model, const target::Device& device,
                                        const std::vector<TaskSchedule>& schedules,
                                        const CompileOptions& options,
                                        const runtime::LoadOptions& load_options) {
  TS_CHECK(options.cache != nullptr, "a model in memory needs a cache that holds its weights");
  TS_ASSIGN_OR_RETURN(const codegen::Backend* backend, backend_of(options, device));
  TS_ASSIGN_OR_RETURN(AssembledModel assembled, assemble(model, device, schedules, options, *options.cache));
  ModelInMemory out;
  if (device.kind() == target::DeviceKind::kGpu) {
    std::vector<std::vector<char>> modules;
    for (const auto& task : assembled.built) modules.push_back(task.task->kernel.object);
    TS_ASSIGN_OR_RETURN(const std::vector<char> all, backend->link(modules));
    TS_ASSIGN_OR_RETURN(out.model, runtime::Model::from_modules(std::move(assembled.description), all,
                                                                assembled.weights, load_options));
    return out;
  }
  for (const auto& task : assembled.built) {
    TS_ASSIGN_OR_RETURN(auto loaded, backend->load(task.task->kernel.object, task.task->kernel.symbol));
    out.kernels.push_back(std::move(loaded));
  }
  std::vector<TensorsmithKernel> functions;
  for (const graph::Call& call : model.partition.calls)
    functions.push_back(call.task ? out.kernels[*call.task]->function() : nullptr);
  TS_ASSIGN_OR_RETURN(out.model, runtime::Model::from_memory(std::move(assembled.description), functions,
                                                             assembled.weights, load_options));
  return out;
}

}  // namespace tensorsmith::engine
