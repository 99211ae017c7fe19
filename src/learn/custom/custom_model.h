// Cost models of users: a program that is asked over pipes (learn/custom/command_model.h), or functions of
// another language (python/native/cost_model.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "learn/cost_model.h"
#include "learn/custom/custom_batch.h"
#include "target/target.h"

namespace tensorsmith::learn {

// Properties that a model of the user states about itself.
struct CustomTraits {
  CustomInputs inputs{.features = true};
  bool learns = false;  // whether update() has an effect
  // Standard deviation of log(seconds) among programs of a task; 0 = not known: then the model counts more
  // with each measurement of the task.
  double sigma = 0;
};

// Facts that a model of the user is told before the first batch.
struct CustomSession {
  const target::Device& device;
  const std::vector<std::string>& feature_names;
};

// The model itself. Calls come from one thread at a time.
class CustomScorer {
 public:
  virtual ~CustomScorer() = default;
  virtual const CustomTraits& traits() const = 0;
  // Returns a score of each program: minus the logarithm of its expected time, up to a constant for each
  // task. Higher is faster; -inf: the program cannot run. `tasks`: all tasks so far, which batch.tasks
  // numbers.
  virtual Result<std::vector<double>> predict(CustomBatch batch, std::span<const CustomTask> tasks) = 0;
  // Learns from all programs that were measured so far, with batch.seconds. Called only if the model learns.
  virtual Status update(CustomBatch batch, std::span<const CustomTask> tasks) = 0;
};
using MakeCustomScorer = std::function<Result<std::unique_ptr<CustomScorer>>(const CustomSession& session)>;

struct CustomModelOptions {
  std::string name;       // "command:PROGRAM"
  bool frozen = false;    // the model does not learn
  bool recorded = false;  // see CustomFeatures
};
// Makes a cost model that asks the scorer. Its errors end a search (CostModel::required). Besides the
// scorer's errors, predict() returns kMismatch for a wrong number of scores and for scores that are NaN or
// +inf. The place of all of them is the name, and later calls return the first error again.
Result<std::unique_ptr<CostModel>> make_custom_model(const CustomModelOptions& options,
                                                     const target::Device& device,
                                                     const MakeCustomScorer& make_scorer);

}  // namespace tensorsmith::learn
