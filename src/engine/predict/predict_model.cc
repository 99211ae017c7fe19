#include "engine/predict/predict_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/text.h"
#include "learn/dataset/import.h"
#include "learn/latency/least_time.h"
#include "search/pipeline.h"
#include "space/estimate/gpu_constants.h"
#include "target/machine.h"

namespace tensorsmith::engine {
namespace {

// The inputs of a prediction for a schedule.
struct TaskProgram {
  sched::Schedule schedule;
  feature::LeafFeatures leaves;
  double least_seconds = 0;
};

Result<TaskProgram> program_of(const graph::Task& task, const sched::Trace& trace,
                               const target::Device& device) {
  const auto in_task = [&](const Error& error) {
    return Error{error.code, "task " + task.name, error.message()};
  };
  auto schedule = sched::replay(task.workload, trace);
  if (!schedule.ok()) return in_task(schedule.error());
  auto leaves = feature::extract_leaves(*schedule, search::feature_options(device));
  if (!leaves.ok()) return in_task(leaves.error());
  const double least = learn::least_seconds(task.workload, *schedule, *leaves, device);
  // Even an elementwise kernel of a few bytes takes some time.
  constexpr double kNanosecond = 1e-9;
  return TaskProgram{std::move(schedule).value(), std::move(leaves).value(), std::max(least, kNanosecond)};
}

// Sets the prediction, but not below the device's lower bound.
void set_seconds(double seconds, TaskPrediction& prediction) {
  prediction.raised = seconds < prediction.least_seconds;
  prediction.seconds = std::max(seconds, prediction.least_seconds);
}

Result<TaskPrediction> estimate_task(const graph::Task& task, const TaskSchedule& schedule,
                                     const target::Device& device) {
  TS_ASSIGN_OR_RETURN(const TaskProgram program, program_of(task, schedule.trace, device));
  TaskPrediction prediction;
  prediction.seconds = prediction.least_seconds = program.least_seconds;
  if (!std::isfinite(schedule.estimated_seconds) || schedule.estimated_seconds <= 0) {
    prediction.roofline_because = "the design space has no estimate for its schedule";
    return prediction;
  }
  set_seconds(schedule.estimated_seconds, prediction);
  prediction.log_sigma = space::gpu_constants().error_sigma;
  prediction.log_90 = space::gpu_constants().error_90;
  return prediction;
}

// Speeds relative to data streams that prefetchers follow, measured on networks of the zoo
// (docs/prediction.md): the values between kernels come from the last-level cache rather than from
// nearer ones, and the caller's tensors are read line by line in rows that are not adjacent.
constexpr double kActivationsFaster = 4;
constexpr double kInputsSlower = 8;
// A kernel that runs repeatedly keeps its data in the last-level cache up to this share of it.
constexpr double kKeptAlone = 0.25;
// Standard deviation of the log error that remains in those networks' runs.
constexpr double kContextLogSigma = 0.07;
// Half width of the 90 % interval of a normal distribution, in standard deviations.
constexpr double kNinetyPercent = 1.6449;

// Returns the seconds that each call waits for data that are in the caches when the task runs
// alone, see predict_model().
std::vector<double> refills(const LoadedModel& model, const target::Device& device, double run_seconds,
                            double cache_retention) {
  const auto& calls = model.partition.calls;
  std::vector<double> seconds(calls.size(), 0);
  // The model was fitted on CPUs.
  if (device.kind() != target::DeviceKind::kCpu || device.memory_bandwidth_gbs <= 0) return seconds;
  const double cache = std::max(device.l3_bytes, device.l2_bytes);
  IdVector<graph::ValueId, int> reads(model.graph.values.size(), 0);  // of constants
  double footprint = model.memory.arena_bytes;
  for (const auto& call : calls) {
    for (const auto id : call.inputs) {
      const auto& value = model.graph.values[id];
      if (!value.constant || ++reads[id] > 1) continue;
      footprint += value.bytes();
    }
  }
  // Share of cached data that is evicted between reads if a run reads the data this many times.
  const auto taken_of = [&](int times) {
    return 1 - std::pow(cache_retention, run_seconds / times / target::kCacheRetentionSeconds);
  };
  const double taken = taken_of(1);
  const double lost = footprint > cache ? 1 : taken;
  const std::set<graph::ValueId> inputs(model.graph.inputs.begin(), model.graph.inputs.end());
  for (size_t c = 0; c < calls.size(); ++c) {
    double weights = 0, lost_weights = 0, given = 0, activations = 0;  // bytes
    const auto add = [&](graph::ValueId id) {
      const auto& value = model.graph.values[id];
      const double size = value.bytes();
      if (value.constant) {
        weights += size;
        lost_weights += size * (footprint > cache ? 1 : taken_of(reads[id]));
      } else if (inputs.contains(model.partition.storage_of[id])) {
        given += size;
      } else {
        activations += size;
      }
    };
    std::for_each(calls[c].inputs.begin(), calls[c].inputs.end(), add);
    std::for_each(calls[c].outputs.begin(), calls[c].outputs.end(), add);
    double bytes = lost * kInputsSlower * given;  // in bytes that a stream would read in the same time
    if (weights + given + activations <= kKeptAlone * cache)
      bytes += lost_weights + taken * activations / kActivationsFaster;
    seconds[c] = bytes / (device.memory_bandwidth_gbs * 1e9);
  }
  return seconds;
}

// Bytes that every run reads or writes: weights, the caller's inputs and its outputs.
double bytes_of_run(const LoadedModel& model) {
  std::set<graph::ValueId> used(model.graph.outputs.begin(), model.graph.outputs.end());
  const std::set<graph::ValueId> inputs(model.graph.inputs.begin(), model.graph.inputs.end());
  std::map<graph::ValueId, double> part;  // bytes of a weight or an input that the calls read
  for (const auto& call : model.partition.calls) {
    if (!call.task) continue;  // its inputs are read completely, and its time is that of its operations
    const auto& workload = model.partition.tasks[*call.task].workload;
    const std::vector<double> read = learn::read_bytes(workload);
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const graph::ValueId id = call.inputs[i];
      if (model.graph.values[id].constant || inputs.contains(model.partition.storage_of[id]))
        part[id] += read[i];
    }
  }
  double bytes = 0;
  for (const graph::ValueId id : used) bytes += model.graph.values[id].bytes();
  for (const auto& [id, read] : part) bytes += std::min<double>(read, model.graph.values[id].bytes());
  return bytes;
}

// Predicted seconds of a call. A routine takes the time of its operations, a cycle each.
double seconds_of(const graph::Call& call, const target::Device& device, const ModelPrediction& prediction) {
  if (call.task) return prediction.tasks[*call.task].seconds;
  const auto demands = runtime::demands_of(call.routine);
  return demands.ok() ? demands->operations * target::CpuMachine(device).seconds_per_cycle() : 0;
}

// Replays the calls one after another with the predicted times of the tasks.
void replay_calls(const LoadedModel& model, const target::Device& device, double cache_retention,
                  ModelPrediction& out) {
  const auto& partition = model.partition;
  const bool cpu = device.kind() == target::DeviceKind::kCpu;
  const double launch = cpu ? 1e-6 * device.launch_overhead_us : 0;
  double alone = 0;
  for (const auto& call : partition.calls) alone += call.turns * seconds_of(call, device, out);
  const std::vector<double> refill = refills(model, device, alone, cache_retention);
  for (size_t c = 0; c < partition.calls.size(); ++c) {
    const double turns = partition.calls[c].turns;
    out.seconds += turns * launch;
    out.launch_seconds += turns * launch;
    const double seconds = turns * seconds_of(partition.calls[c], device, out) + refill[c];
    out.calls.push_back({out.seconds, seconds, refill[c]});
    out.refill_seconds += refill[c];
    out.seconds += seconds;
  }
  out.least_seconds = out.launch_seconds;
  for (const auto& call : partition.calls)
    out.least_seconds += call.task ? call.turns * out.tasks[*call.task].least_seconds : 0;
  out.least_seconds = std::max(out.least_seconds, learn::streaming_seconds(bytes_of_run(model), device));
  if (out.seconds < out.least_seconds && !out.calls.empty()) {
    // The memory traffic of the whole run takes longer than the kernels with their refills.
    const double missing = out.least_seconds - out.seconds;
    out.calls.back().seconds += missing;
    out.calls.back().refill_seconds += missing;
    out.refill_seconds += missing;
    out.seconds += missing;
  }
  double sigma = 0, half90 = 0;  // s
  bool known = !out.tasks.empty();
  for (size_t t = 0; t < out.tasks.size(); ++t) {
    const TaskPrediction& task = out.tasks[t];
    sigma += partition.tasks[t].calls * task.seconds * task.log_sigma;
    half90 += partition.tasks[t].calls * task.seconds * task.log_90;
    known = known && task.log_sigma > 0;
    out.unseen.device |= task.unseen.device;
    out.unseen.threads |= task.unseen.threads;
    out.unseen.kind |= task.unseen.kind;
    out.unseen.size |= task.unseen.size;
  }
  if (known && out.seconds > 0) {
    const double context = cpu ? kContextLogSigma : 0;
    out.log_sigma = std::hypot(sigma / out.seconds, context);
    out.log_90 = std::hypot(half90 / out.seconds, kNinetyPercent * context);
  }
}

}  // namespace

Result<std::unique_ptr<learn::CostModel>> load_latency_model(const learn::CostModelKinds& kinds,
                                                             const std::string& file) {
  TS_ASSIGN_OR_RETURN(auto model, kinds.load(file));
  if (model->ranks_only() || model->corrects_estimate())
    return Error{ErrorCode::kUnsupported, file,
                 "only orders the programs of a task; name a model that predicts latencies, or none"};
  return model;
}

Result<TaskPrediction> predict_task(const graph::Task& task, const sched::Trace& trace,
                                    const target::Device& device, const learn::CostModel* latency_model) {
  TS_ASSIGN_OR_RETURN(const TaskProgram program, program_of(task, trace, device));
  TaskPrediction prediction;
  prediction.seconds = prediction.least_seconds = program.least_seconds;
  if (latency_model == nullptr) return prediction;
  const learn::StoredWorkload workload{task.key, task.name, ir::print(task.workload), task.flops, {}};
  // Models know devices by their names in stores.
  target::Device named = device;
  named.name = learn::stored_device_name(device);
  const learn::ProgramQuery query{&workload, &program.leaves, &trace, &named};
  const auto predicted = latency_model->predict(std::span(&query, 1));
  if (!predicted.ok()) {
    prediction.roofline_because = predicted.error().message();
    return prediction;
  }
  const learn::Prediction& p = predicted->front();
  if (!std::isfinite(p.seconds) || p.seconds <= 0) {
    prediction.roofline_because = "the cost model predicts that the program cannot run";
    return prediction;
  }
  set_seconds(p.mean_seconds > 0 ? p.mean_seconds : p.seconds, prediction);
  prediction.log_sigma = p.log_sigma;
  prediction.log_90 = p.half90();
  prediction.unseen = p.unseen;
  return prediction;
}

double ModelPrediction::low_seconds() const { return std::max(least_seconds, seconds * std::exp(-log_90)); }
double ModelPrediction::high_seconds() const { return seconds * std::exp(log_90); }

Result<ModelPrediction> predict_model(const LoadedModel& model, const target::Device& device,
                                      const std::vector<TaskSchedule>& schedules,
                                      const learn::CostModel* latency_model, double cache_retention) {
  const auto& tasks = model.partition.tasks;
  TS_CHECK(schedules.size() == tasks.size(), "there is not one schedule per task");
  ModelPrediction out;
  for (size_t t = 0; t < tasks.size(); ++t) {
    TS_ASSIGN_OR_RETURN(TaskPrediction task,
                        predict_task(tasks[t], schedules[t].trace, device, latency_model));
    out.tasks.push_back(std::move(task));
  }
  replay_calls(model, device, cache_retention, out);
  return out;
}

Result<ModelPrediction> predict_by_estimate(const LoadedModel& model, const target::Device& device,
                                            const std::vector<TaskSchedule>& schedules) {
  const auto& tasks = model.partition.tasks;
  TS_CHECK(schedules.size() == tasks.size(), "there is not one schedule per task");
  TS_CHECK(device.kind() == target::DeviceKind::kGpu, "the estimate's errors are only known for GPUs");
  ModelPrediction out;
  for (size_t t = 0; t < tasks.size(); ++t) {
    TS_ASSIGN_OR_RETURN(TaskPrediction task, estimate_task(tasks[t], schedules[t], device));
    out.tasks.push_back(std::move(task));
  }
  replay_calls(model, device, 1, out);
  return out;
}

}  // namespace tensorsmith::engine
