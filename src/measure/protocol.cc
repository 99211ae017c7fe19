#include "measure/protocol.h"

#include "ir/text.h"
#include "measure/wire.h"

namespace tensorsmith::measure {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 46;

Error corrupt(const char* what) {
  return Error{ErrorCode::kCorrupt, "", std::string("not a valid ") + what + " message"};
}

void add_tensor(WireWriter& w, const TensorSpec& t) {
  w.add(t.dtype);
  w.add_list(t.shape);
  w.add(t.offset);
  w.add(t.tolerance.relative);
  w.add(t.tolerance.absolute);
  w.add(t.tolerance.allowed);
}

TensorSpec get_tensor(WireReader& r) {
  TensorSpec t;
  t.dtype = r.get<ir::DType>();
  t.shape = r.get_list<int64_t>();
  t.offset = r.get<int64_t>();
  t.tolerance.relative = r.get<double>();
  t.tolerance.absolute = r.get<double>();
  t.tolerance.allowed = r.get<int64_t>();
  return t;
}

void add_launch(WireWriter& w, const runtime::Launch& launch) {
  w.add_text(launch.symbol);
  for (const auto* extents : {&launch.grid, &launch.block}) {
    for (const int64_t extent : *extents) w.add(extent);
  }
  w.add(launch.shared_bytes);
  w.add<uint64_t>(launch.arguments.size());
  for (const auto& argument : launch.arguments) {
    w.add(argument.buffer);
    w.add(argument.workspace_offset);
    w.add(argument.map.has_value());
    if (!argument.map) continue;
    w.add(argument.map->element_bytes);
    w.add_list(argument.map->extents);
    w.add_list(argument.map->strides);
    w.add_list(argument.map->box);
    w.add(argument.map->swizzle_bytes);
  }
}

runtime::Launch get_launch(WireReader& r) {
  runtime::Launch launch;
  launch.symbol = r.get_text();
  for (auto* extents : {&launch.grid, &launch.block}) {
    for (int64_t& extent : *extents) extent = r.get<int64_t>();
  }
  launch.shared_bytes = r.get<int64_t>();
  const auto arguments = r.get<uint64_t>();
  for (uint64_t i = 0; i < arguments && r.ok(); ++i) {
    runtime::LaunchArgument& argument = launch.arguments.emplace_back();
    argument.buffer = r.get<int64_t>();
    argument.workspace_offset = r.get<int64_t>();
    if (!r.get<bool>()) continue;
    runtime::TensorMap& map = argument.map.emplace();
    map.element_bytes = r.get<int64_t>();
    map.extents = r.get_list<int64_t>();
    map.strides = r.get_list<int64_t>();
    map.box = r.get_list<int64_t>();
    map.swizzle_bytes = r.get<int64_t>();
  }
  return launch;
}

bool is_inside(const TensorSpec& t, int64_t memory_bytes) {
  if (!is_dtype(t.dtype)) return false;
  int64_t bytes = ir::bytes_of(t.dtype);
  for (const int64_t extent : t.shape) {
    if (extent < 0 || (extent > 0 && bytes > kMaxBytes / extent)) return false;
    bytes *= extent;
  }
  return t.offset >= 0 && t.offset <= memory_bytes && bytes <= memory_bytes - t.offset;
}

}  // namespace

int64_t TensorSpec::elements() const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

std::vector<char> encode(const TaskSpec& task) {
  WireWriter w;
  for (const auto* list : {&task.inputs, &task.outputs}) {
    w.add<uint64_t>(list->size());
    for (const auto& tensor : *list) add_tensor(w, tensor);
  }
  w.add(task.memory_bytes);
  w.add(task.memory_limit_bytes);
  w.add<int32_t>(task.threads);
  w.add(task.measure_energy);
  return w.bytes();
}

Result<TaskSpec> decode_task(const std::vector<char>& bytes) {
  WireReader r(bytes);
  TaskSpec task;
  for (auto* list : {&task.inputs, &task.outputs}) {
    const auto count = r.get<uint64_t>();
    for (uint64_t i = 0; i < count && r.ok(); ++i) list->push_back(get_tensor(r));
  }
  task.memory_bytes = r.get<int64_t>();
  task.memory_limit_bytes = r.get<int64_t>();
  task.threads = r.get<int32_t>();
  task.measure_energy = r.get<bool>();
  if (!r.complete() || task.memory_bytes < 0 || task.memory_limit_bytes < 0 || task.threads < 1)
    return corrupt("task");
  for (const auto* list : {&task.inputs, &task.outputs}) {
    for (const auto& tensor : *list) {
      if (!is_inside(tensor, task.memory_bytes)) return corrupt("task");
    }
  }
  return task;
}

std::vector<char> encode(const RunRequest& request) {
  WireWriter w;
  w.add_list(request.object);
  w.add_text(request.symbol);
  w.add<uint64_t>(request.launches.size());
  for (const auto& launch : request.launches) add_launch(w, launch);
  w.add(request.shared_workspace_bytes);
  w.add(request.thread_workspace_bytes);
  w.add<uint64_t>(request.prepared.size());
  for (const auto& constant : request.prepared) {
    w.add<uint64_t>(constant.input);
    w.add_text(constant.transform ? ir::print(*constant.transform) : "");
    w.add(constant.layout.has_value());
    if (!constant.layout) continue;
    w.add<uint64_t>(constant.layout->size());
    for (const auto& d : *constant.layout) {
      w.add<int32_t>(d.dim);
      w.add(d.divisor);
      w.add(d.extent);
    }
  }
  w.add(request.flush_bytes);
  const TimingOptions& t = request.timing;
  w.add<int32_t>(t.min_repeats);
  w.add<int32_t>(t.max_repeats);
  w.add(t.target_spread);
  w.add(t.min_repeat_s);
  w.add(t.best_seconds);
  w.add(t.hopeless_factor);
  w.add<int32_t>(t.hopeless_repeats);
  w.add(t.loser_factor);
  w.add(t.budget_s);
  w.add(t.flush_cache);
  w.add(request.make_reference);
  return w.bytes();
}

Result<RunRequest> decode_run(const std::vector<char>& bytes) {
  WireReader r(bytes);
  RunRequest request;
  request.object = r.get_list<char>();
  request.symbol = r.get_text();
  const auto launches = r.get<uint64_t>();
  for (uint64_t i = 0; i < launches && r.ok(); ++i) request.launches.push_back(get_launch(r));
  request.shared_workspace_bytes = r.get<int64_t>();
  request.thread_workspace_bytes = r.get<int64_t>();
  const auto prepared_count = r.get<uint64_t>();
  for (uint64_t i = 0; i < prepared_count && r.ok(); ++i) {
    lower::PreparedConstant& constant = request.prepared.emplace_back();
    constant.input = r.get<uint64_t>();
    if (const std::string transform = r.get_text(); !transform.empty()) {
      auto workload = ir::parse_workload(transform);
      if (!workload.ok()) return corrupt("run");
      constant.transform = std::make_shared<const ir::Workload>(std::move(*workload));
    }
    if (!r.get<bool>()) continue;
    constant.layout.emplace();
    const auto dims = r.get<uint64_t>();
    for (uint64_t d = 0; d < dims && r.ok(); ++d) {
      sched::LayoutDim dim;
      dim.dim = r.get<int32_t>();
      dim.divisor = r.get<int64_t>();
      dim.extent = r.get<int64_t>();
      constant.layout->push_back(dim);
    }
  }
  request.flush_bytes = r.get<int64_t>();
  TimingOptions& t = request.timing;
  t.min_repeats = r.get<int32_t>();
  t.max_repeats = r.get<int32_t>();
  t.target_spread = r.get<double>();
  t.min_repeat_s = r.get<double>();
  t.best_seconds = r.get<double>();
  t.hopeless_factor = r.get<double>();
  t.hopeless_repeats = r.get<int32_t>();
  t.loser_factor = r.get<double>();
  t.budget_s = r.get<double>();
  t.flush_cache = r.get<bool>();
  request.make_reference = r.get<bool>();
  if (!r.complete() || request.flush_bytes < 0 || request.shared_workspace_bytes < 0 ||
      request.thread_workspace_bytes < 0)
    return corrupt("run");
  return request;
}

std::vector<char> encode(const record::MeasureResult& result) {
  WireWriter w;
  w.add(result.outcome);
  w.add_text(result.reason);
  w.add_list(result.seconds);
  w.add<int32_t>(result.runs_per_repeat);
  w.add(result.stopped_early);
  w.add(result.measure_seconds);
  w.add(result.joules.has_value());
  w.add(result.joules.value_or(0));
  return w.bytes();
}

Result<record::MeasureResult> decode_result(const std::vector<char>& bytes) {
  WireReader r(bytes);
  record::MeasureResult result;
  result.outcome = r.get<record::Outcome>();
  result.reason = r.get_text();
  result.seconds = r.get_list<double>();
  result.runs_per_repeat = r.get<int32_t>();
  result.stopped_early = r.get<bool>();
  result.measure_seconds = r.get<double>();
  const bool energy_known = r.get<bool>();
  const auto joules = r.get<double>();
  if (energy_known) result.joules = joules;
  if (!r.complete() || result.outcome > record::Outcome::kWorkerLost) return corrupt("result");
  return result;
}

}  // namespace tensorsmith::measure
