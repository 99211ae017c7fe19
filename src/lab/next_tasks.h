// Chooses the tasks to measure next on a device so that a cost model learns most: tasks that the
// model is unsure about and that represent many others.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/model/load_model.h"
#include "engine/predict/model_data.h"
#include "learn/cost_model.h"
#include "target/target.h"

namespace tensorsmith::lab {

struct NextTask {
  std::string key, name;
  int64_t programs = 0;  // known programs of the task
  // Mean over programs of Prediction::disagreement, or of log_sigma if the model has no ensemble
  // members; 0: unknown.
  double uncertainty = 0;
};

struct NextTasks {
  std::vector<NextTask> chosen;  // most valuable first
  int64_t measured = 0;          // tasks measured before
  int64_t candidates = 0;        // tasks not measured before
};

// Chooses among the tasks of a store, using programs of other devices of the same kind in place of
// those that the device would run. A task counts as measured if the store, or with a split its
// training and validation parts, has times on the device. kNotFound if there is nothing to choose
// from. `seed` chooses the programs that represent a task.
Result<NextTasks> next_tasks(const engine::ModelData& data, const learn::Split* split,
                             const learn::CostModel& model, const target::Device& device, uint64_t seed,
                             size_t count);

// Chooses among the tasks of networks, using programs drawn from the tasks' design spaces.
// `measured` has keys of tasks; `device` must have its measured attributes.
Result<NextTasks> next_tasks(const std::vector<engine::ModelSource>& networks,
                             const std::set<std::string>& measured, const learn::CostModel& model,
                             const target::Device& device, uint64_t seed, size_t count);

}  // namespace tensorsmith::lab
