// `train --features profile`: trains models on profiled programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tensorsmith::tools {

struct ProfileTraining {
  std::string kind;  // "two-step" (also for ""), or "profile"
  std::vector<std::string> databases, parameters, tasks, without;
  std::string profiler;  // profiler whose counters are used
  std::string output, command;
  uint64_t seed = 0;
  bool force = false, json = false;
};
Status train_on_profiles(const ProfileTraining& training);

}  // namespace tensorsmith::tools
