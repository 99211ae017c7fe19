// Which tasks to measure next on a device, so that a cost model learns most of it: those that the model is unsure about and that
// stand for many others.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/load_model.h"
#include "engine/model_data.h"
#include "learn/cost_model.h"
#include "target/target.h"

namespace tensorsmith::engine {

struct NextTask {
  std::string key, name;
  int64_t programs = 0;  // that are known of it
  // Mean over programs of Prediction::disagreement, of log_sigma where the model has no members; 0: it does not tell.
  double uncertainty = 0;
};

struct NextTasks {
  std::vector<NextTask> chosen;  // the most valuable first
  int64_t measured = 0;          // tasks that were measured already
  int64_t candidates = 0;        // tasks that were not
};

// Of a store, whose programs on other devices of the kind stand for those that the device would run. Measured are the tasks of which
// the store has times on the device; with a split, of which its training and validation part have. kNotFound where there is nothing
// to choose from. seed: of the programs that stand for a task.
Result<NextTasks> next_tasks(const ModelData& data, const learn::Split* split, const learn::CostModel& model,
                             const target::Device& device, uint64_t seed, size_t count);

// Of networks, by programs drawn from the tasks' design spaces. measured: keys of tasks. device: with its measurements.
Result<NextTasks> next_tasks(const std::vector<ModelSource>& networks, const std::set<std::string>& measured,
                             const learn::CostModel& model, const target::Device& device, uint64_t seed,
                             size_t count);

}  // namespace tensorsmith::engine
