// A cost model in two steps, which needs no run: static features -> the counters of a profile -> latency. For programs
// of this compiler on CPUs, as learned from profiled programs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "learn/cost_model.h"
#include "learn/profile/profiled_programs.h"

namespace tensorsmith::learn {

struct TwoStepOptions {
  bool counters =
      true;          // false: latency straight from the static features, by the same learner: the baseline
  int rounds = 200;  // of the trees of each counter
  int latency_rounds = 300;
  int max_depth = 6;
  double eta = 0.1;
  int folds = 5;
  uint64_t seed = 0;
  std::string command;  // for the card
};

// Counters are predicted by trees of their own. The second step learns from predictions of counters by trees that have
// not seen the program's task (of its fold), as it will be asked about others; its label is the logarithm of seconds a
// static estimate of the operations' time. kInvalidArgument with fewer tasks than folds is none: then programs go round
// the folds.
Result<std::unique_ptr<CostModel>> train_two_step(const ProfiledPrograms& data,
                                                  const TwoStepOptions& options);

}  // namespace tensorsmith::learn
