// `eval --from-db`: evaluates how well a model ranks profiled programs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "learn/profile/rank_sets.h"

namespace tensorsmith::tools {

struct ProfiledEvaluation {
  std::string model;
  std::vector<std::string> databases, tasks;
  learn::RankSetOptions sets;
  bool json = false;
};
Status evaluate_profiled(const ProfiledEvaluation& evaluation);

}  // namespace tensorsmith::tools
