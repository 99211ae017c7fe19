// Implements `tensorsmith predict`: the latency of a model on a device, with the schedules that
// compiling would use and all known attributes of the device.
#pragma once

#include <string>
#include <vector>

#include "base/sinks.h"
#include "engine/model/load_model.h"
#include "engine/predict/predict_model.h"
#include "engine/tune/schedules.h"
#include "learn/latency/kinds.h"
#include "target/assumed.h"

namespace tensorsmith::engine {

struct PredictOptions {
  // A model file; empty = cpu_model, or on GPUs their design space's estimate.
  std::string latency_model;
  std::string cpu_model;  // a model file for CPUs; empty = the roofline
  const learn::CostModelKinds* kinds = &learn::product_kinds();  // kinds that the two files may have
  bool roofline = false;         // always use the roofline, whatever the models
  std::string device = "local";  // specification for find_device
  int threads = 0;               // 0 = all cores of the device
  std::string database;  // schedules of tuned tasks and measured attributes of the device; empty = none
  bool untuned = false;  // use the untuned schedules, whatever the database holds
  ScheduleOptions schedules;
};

struct Prediction {
  std::string predictor;                          // display text: the file and kind of the model
  target::Device device;                          // with measured and assumed attributes
  std::vector<target::AssumedAttribute> assumed;  // attributes that the device does not state
  std::vector<TaskSchedule> schedules;            // by task
  std::vector<char> tuned;                        // by task: whether the schedule comes from a record
  bool by_estimate = false;                       // predicted by the estimate of a GPU's design space
  double cache_retention = 1;                     // target::measure_cache_retention
  LoadedModel model;
  ModelPrediction latency;
  std::vector<std::string> warnings;  // reasons to doubt the prediction, one line each
  std::vector<std::string> notes;     // other information for readers of the prediction, one line each
};

// A prediction by a GPU's estimate uses the untuned schedules whatever the database holds, because
// recorded traces have no estimate. Errors: kInvalidArgument for more threads than cores, threads
// on a GPU, or a model that only ranks; kMismatch for a model that was not trained on this kind of
// device.
Result<Prediction> predict(const ModelSource& source, const PredictOptions& options, LogSink& log);

}  // namespace tensorsmith::engine
