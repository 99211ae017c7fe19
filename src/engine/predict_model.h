// How long a model takes on a device, from what a latency model says of its tasks. Nothing is compiled or
// run.
#pragma once

#include <string>
#include <vector>

#include "engine/compile_model.h"
#include "learn/cost_model.h"

namespace tensorsmith::engine {

struct TaskPrediction {
  double seconds = 0;        // of one call, by itself: repeated, its data where the caches hold it
  double log_sigma = 0;      // standard deviation of log(seconds), 0 = not known
  double log_90 = 0;         // half the width of the interval of log(seconds) that holds 90 %, 0 = not known
  double least_seconds = 0;  // the device's figures allow no less (learn/latency/least_time.h)
  bool raised = false;       // the latency model said less than that
  learn::Unseen unseen;      // what the latency model has not been trained on
  // Empty: by the latency model. Else why that could not say, and seconds are the roofline's.
  std::string roofline_because;
};

struct CallPrediction {
  double start_seconds = 0, seconds = 0;
  double refill_seconds = 0;  // of these: waiting for data that are in the caches when the task runs alone
};

struct ModelPrediction {
  double seconds = 0;                 // of a run
  double log_sigma = 0, log_90 = 0;   // of seconds; 0 = not known
  double least_seconds = 0;           // of a run: the device's figures allow no less
  learn::Unseen unseen;               // of any task
  double refill_seconds = 0;          // of the calls
  double launch_seconds = 0;          // between kernels
  std::vector<TaskPrediction> tasks;  // by task of the partition
  std::vector<CallPrediction> calls;  // by call

  // Of the 90 % interval; where log_90 is known.
  double low_seconds() const;
  double high_seconds() const;
};

// One task with one schedule, as predict_model() says of its tasks. Errors: a schedule that does not replay.
Result<TaskPrediction> predict_task(const graph::Task& task, const sched::Trace& trace,
                                    const target::Device& device, const learn::CostModel* latency_model);

// model: null stands for the roofline, the least time that the device allows (learn/latency/least_time.h),
// which no prediction is below: neither a task's nor the run's, which reads its weights and inputs and writes
// its outputs where the caches cannot hold them. schedules: by task. The run is replayed call by call in the
// order of the partition, one kernel at a time, as the runtime does:
//   call   = task + refill,  run = sum over calls of (launch + call)
//   launch = device.launch_overhead_us of a CPU; the time of a GPU's task contains its launches
//   refill = on CPUs, what a measurement of the task alone finds in the caches and the run does not, in bytes that
//            memory streams at its bandwidth: the call's weights; its share of the model's inputs, 8 times
//            (they are read in rows that lie apart); its other values, a quarter of them (from the last
//            cache). Weights and other values only where all data of the call take a quarter of the last
//            cache at the most: else they are not there when it runs alone, either. Weights and inputs count
//            whole where the model is larger than the last cache; else, and other values always, as far as
//            others take the cache during a run: 1 - cache_retention ^ (run / 2 ms), see
//            target::measure_cache_retention.
//   sigma  = sum over tasks of calls * seconds * log_sigma / run: tasks share the model's errors for the
//            device and for a structure of computation, so their errors count as one (delta method); and,
//            independent of it, on CPUs .07 for what refill does not explain. Half widths of 90 % intervals the same.
//            Not known where a task's is not
// Every task counts: where the model fails or gives no finite time, the roofline stands in and is named.
// Errors: a schedule that does not replay on its task.
Result<ModelPrediction> predict_model(const LoadedModel& model, const target::Device& device,
                                      const std::vector<TaskSchedule>& schedules,
                                      const learn::CostModel* latency_model, double cache_retention = 1);

// The same for a GPU by its design space's estimate of the untuned schedules (TaskSchedule::estimated_seconds), or the
// roofline where that is longer. Errors are those that the estimate has for programs of Ansor
// (space/estimate/gpu_constants.h), whatever the device and the task.
Result<ModelPrediction> predict_by_estimate(const LoadedModel& model, const target::Device& device,
                                            const std::vector<TaskSchedule>& schedules);

}  // namespace tensorsmith::engine
