// Predicts the latency of a model on a device from a latency model's predictions for its tasks.
// Nothing is compiled or run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/model/compile_model.h"
#include "learn/cost_model.h"
#include "learn/latency/kinds.h"

namespace tensorsmith::engine {

struct TaskPrediction {
  // Time of one call of the task alone and repeated, so that its data are in the caches that hold
  // them.
  double seconds = 0;
  double log_sigma = 0;      // standard deviation of log(seconds), 0 = not known
  double log_90 = 0;         // half the width of the interval of log(seconds) that holds 90 %, 0 = not known
  double least_seconds = 0;  // lower bound from the device's figures (learn/latency/least_time.h)
  bool raised = false;       // the latency model predicted less than least_seconds
  learn::Unseen unseen;      // features that the latency model was not trained on
  // Empty: predicted by the latency model. Otherwise why it could not predict, and `seconds` is the
  // roofline's.
  std::string roofline_because;
};

struct CallPrediction {
  double start_seconds = 0, seconds = 0;
  // Part of `seconds`: waiting for data that are in the caches when the task runs alone.
  double refill_seconds = 0;
};

struct ModelPrediction {
  double seconds = 0;                 // of one run
  double log_sigma = 0, log_90 = 0;   // of seconds; 0 = not known
  double least_seconds = 0;           // lower bound of a run from the device's figures
  learn::Unseen unseen;               // union over the tasks
  double refill_seconds = 0;          // sum over the calls
  double launch_seconds = 0;          // between kernels
  std::vector<TaskPrediction> tasks;  // by task of the partition
  std::vector<CallPrediction> calls;  // by call

  // Bounds of the 90 % interval; only if log_90 is known.
  double low_seconds() const;
  double high_seconds() const;
};

// Loads a cost model whose predictions are latencies. Errors: those of CostModelKinds::load; kUnsupported for
// a model that only orders the programs of a task.
Result<std::unique_ptr<learn::CostModel>> load_latency_model(const learn::CostModelKinds& kinds,
                                                             const std::string& file);

// Predicts one task with one schedule as predict_model() does. Errors: a schedule that does not
// replay.
Result<TaskPrediction> predict_task(const graph::Task& task, const sched::Trace& trace,
                                    const target::Device& device, const learn::CostModel* latency_model);

// latency_model: null stands for the roofline, the least time that the device allows
// (learn/latency/least_time.h). It bounds all predictions from below: those of tasks, and that of
// the run, which reads its weights and inputs and writes its outputs where the caches cannot hold
// them. `schedules` is indexed by task. The run is replayed call by call in the order of the
// partition, one kernel at a time, as the runtime does:
//   call   = task + refill,  run = sum over calls of (launch + call)
//   launch = device.launch_overhead_us of a CPU; the time of a GPU's task contains its launches
//   refill = on CPUs, the time to stream from memory, at its bandwidth, the data that a measurement of the
//            task alone finds in the caches but a call within a run does not: the call's weights; its share
//            of the model's inputs, times 8 (they are read in rows that are not adjacent); a quarter of its
//            other values (which come from the last-level cache). Weights and other values are included only
//            if all data of the call take at most a quarter of the last-level cache; larger data do not stay
//            in the cache when the task runs alone, either. Weights and inputs count fully if the model is
//            larger than the last-level cache. Otherwise they count, as other values always do, by the share
//            of the cache that others take during a run: 1 - cache_retention ^ (run / 2 ms), see
//            target::measure_cache_retention.
//   sigma  = sum over tasks of calls * seconds * log_sigma / run: tasks share the model's errors for the
//            device and for a structure of computation, so their errors are taken as fully correlated (delta
//            method); on CPUs an independent .07 is added for what refill does not explain. The half width of
//            the 90 % interval is computed in the same way. Both are unknown if those of any task are.
// Every task counts: if the model fails or gives no finite time, the roofline replaces it and
// TaskPrediction::roofline_because says so. Errors: a schedule that does not replay on its task.
Result<ModelPrediction> predict_model(const LoadedModel& model, const target::Device& device,
                                      const std::vector<TaskSchedule>& schedules,
                                      const learn::CostModel* latency_model, double cache_retention = 1);

// Predicts the latency on a GPU by its design space's estimate of the untuned schedules
// (TaskSchedule::estimated_seconds), or by the roofline where that is longer. The errors are those
// of the estimate for programs of Ansor (space/estimate/gpu_constants.h), for every device and
// task.
Result<ModelPrediction> predict_by_estimate(const LoadedModel& model, const target::Device& device,
                                            const std::vector<TaskSchedule>& schedules);

}  // namespace tensorsmith::engine
