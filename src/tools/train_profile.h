// `train --features profile`: models that learn from profiled programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tensorsmith::tools {

struct ProfileTraining {
  std::string kind;  // "two-step", which is that of "", or "profile"
  std::vector<std::string> databases, parameters, tasks, without;
  std::string profiler;  // whose counters
  std::string output, command;
  uint64_t seed = 0;
  bool force = false, json = false;
};
Status train_on_profiles(const ProfileTraining& training);

}  // namespace tensorsmith::tools
