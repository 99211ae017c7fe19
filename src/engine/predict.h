// What `tensorsmith predict` does: a model's latency on a device, with the schedules that compiling would take
// and all that is known of the device.
#pragma once

#include <string>
#include <vector>

#include "base/sinks.h"
#include "engine/load_model.h"
#include "engine/predict_model.h"
#include "engine/schedules.h"
#include "target/assumed.h"

namespace tensorsmith::engine {

struct PredictOptions {
  std::string latency_model;     // a model file; empty = cpu_model or, on GPUs, their space's estimate
  std::string cpu_model;         // a model file for CPUs; empty = the roofline
  bool roofline = false;         // whatever the models
  std::string device = "local";  // target::find_device
  int threads = 0;               // 0 = all cores of the device
  std::string database;          // schedules of tuned tasks, measured attributes of the device; empty = none
  bool untuned = false;          // the untuned schedules, whatever the database holds
  ScheduleOptions schedules;
};

struct Prediction {
  std::string predictor;                          // for people: the file and kind of the model
  target::Device device;                          // with measured and assumed attributes
  std::vector<target::AssumedAttribute> assumed;  // what the device does not say
  std::vector<TaskSchedule> schedules;            // by task
  std::vector<char> tuned;                        // by task: whether the schedule is of a record
  bool by_estimate = false;                       // by the space's estimate, of a GPU
  double cache_retention = 1;                     // target::measure_cache_retention
  LoadedModel model;
  ModelPrediction latency;
  std::vector<std::string> warnings;  // what makes the prediction doubtful, a line each
  std::vector<std::string> notes;     // what else whoever reads the prediction has to know of it, a line each
};

// By the estimate a GPU's schedules are the untuned ones whatever the database holds: there is none of a recorded trace.
// Errors: kInvalidArgument for more threads than cores, threads of a GPU and a model that only ranks, kMismatch for
// a model that knows nothing of such devices.
Result<Prediction> predict(const ModelSource& source, const PredictOptions& options, LogSink& log);

}  // namespace tensorsmith::engine
