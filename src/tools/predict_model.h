// How long a model takes on a device, from what a latency model says of its tasks. Nothing is compiled or
// run.
#pragma once

#include <string>
#include <vector>

#include "learn/latency/latency_model.h"
#include "tools/compile_model.h"

namespace tensorsmith::tools {

struct TaskPrediction {
  double seconds = 0;    // of one call, by itself: repeated, its data where the caches hold it
  double log_sigma = 0;  // standard deviation of log(seconds), 0 = not known
  // Empty: by the latency model. Else why that could not say, and seconds are the roofline's.
  std::string roofline_because;
};

struct CallPrediction {
  double start_seconds = 0, seconds = 0;
  double refill_seconds = 0;  // of these: weights that the caches have lost since the last run
};

struct ModelPrediction {
  double seconds = 0;                 // of a run
  double log_sigma = 0;               // of seconds; 0 = not known
  double refill_seconds = 0;          // of the calls
  double launch_seconds = 0;          // between kernels
  std::vector<TaskPrediction> tasks;  // by task of the partition
  std::vector<CallPrediction> calls;  // by call
};

// model: null stands for the roofline (learn/latency/roofline.h). schedules: by task. The run is replayed
// call by call in the order of the partition, one kernel at a time, as the runtime does:
//   call   = task + refill,  run = sum over calls of (launch + call)
//   launch = device.launch_overhead_us; on CPUs the time of a kernel contains starting its threads
//   refill = bytes of the call's weights / memory bandwidth, where they fit into the last cache with the
//   call's
//            other data (so a measurement of the task alone finds them there) and the whole model does not;
//            what prefetching hides of it is not known
//   sigma  = sum over tasks of calls * seconds * log_sigma / run: tasks share the model's errors for the
//   device
//            and for a structure of computation, so their errors count as one (delta method)
// Every task counts: where the model fails or gives no finite time, the roofline stands in and is named.
// Errors: a schedule that does not replay on its task.
Result<ModelPrediction> predict_model(const LoadedModel& model, const target::Device& device,
                                      const std::vector<TaskSchedule>& schedules,
                                      const learn::LatencyModel* latency_model);

}  // namespace tensorsmith::tools
