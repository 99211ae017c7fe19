// Generates shell scripts that complete commands, options and their values.
#pragma once

#include <string>

#include "tools/command_tree.h"

namespace tensorsmith::tools {

std::string bash_completion(const Command& program);
std::string zsh_completion(const Command& program);
std::string fish_completion(const Command& program);

}  // namespace tensorsmith::tools
