// A cost model that reads the profiler counters of a program, so it can only rank programs that
// have run.
#pragma once

#include <memory>
#include <string>

#include "learn/cost_model.h"
#include "learn/profile/ranker.h"

namespace tensorsmith::learn {

struct ProfileModelOptions {
  Learner learner = Learner::kXgboost;
  uint64_t seed = 0;
  std::string command;  // written to the card
};

// Trains on a part of the programs drawn by the seed; the rest selects the round or epoch
// (train_on_programs). kInvalidArgument if there are no programs.
Result<std::unique_ptr<CostModel>> train_profile_model(const ProfiledPrograms& data,
                                                       const ProfileModelOptions& options);

}  // namespace tensorsmith::learn
