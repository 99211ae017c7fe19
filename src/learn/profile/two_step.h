// A cost model in two steps that needs no run of the program: it predicts the counters of a profile
// from static features, and latency from these counters. For programs that Tensorsmith has compiled
// for CPUs, trained on profiled programs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "learn/cost_model.h"
#include "learn/profile/profiled_programs.h"

namespace tensorsmith::learn {

struct TwoStepOptions {
  bool counters = true;  // false: baseline that predicts latency from the static features by the same learner
  int rounds = 200;      // of the trees for each counter
  int latency_rounds = 300;
  int max_depth = 6;
  double eta = 0.1;
  int folds = 5;
  uint64_t seed = 0;
  std::string command;  // written to the card
};

// Each counter is predicted by its own trees. The second step is trained on predicted counters from
// trees that have not seen the program's task (cross-validation over tasks), as will be the case in
// use. Its label is log(seconds / time of the operations at the device's peak). If there are fewer
// tasks than folds, the folds consist of programs instead of tasks. kInvalidArgument if there are
// no programs.
Result<std::unique_ptr<CostModel>> train_two_step(const ProfiledPrograms& data,
                                                  const TwoStepOptions& options);

}  // namespace tensorsmith::learn
