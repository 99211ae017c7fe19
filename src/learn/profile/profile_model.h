// A cost model that reads what a profiler counted of a program: it ranks programs that have run.
#pragma once

#include <memory>
#include <string>

#include "learn/cost_model.h"
#include "learn/profile/ranker.h"

namespace tensorsmith::learn {

struct ProfileModelOptions {
  Learner learner = Learner::kXgboost;
  uint64_t seed = 0;
  std::string command;  // for the card
};

// Learns on a part of the programs that the seed draws, and the rest chooses the round or epoch (train_on_programs).
// kInvalidArgument where there are no programs.
Result<std::unique_ptr<CostModel>> train_profile_model(const ProfiledPrograms& data,
                                                       const ProfileModelOptions& options);

}  // namespace tensorsmith::learn
