// `train --features profile`: the two-step model of profiled programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tensorsmith::tools {

struct ProfileTraining {
  std::string kind;  // "" or "two-step"
  std::vector<std::string> databases, parameters, without;
  std::string output, command;
  uint64_t seed = 0;
  bool force = false, json = false;
};
Status train_on_profiles(const ProfileTraining& training);

}  // namespace tensorsmith::tools
