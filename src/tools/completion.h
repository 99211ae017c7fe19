// Scripts by which shells complete the commands, their options and the values of these.
#pragma once

#include <string>

#include "tools/command_tree.h"

namespace tensorsmith::tools {

std::string bash_completion(const Command& program);
std::string zsh_completion(const Command& program);
std::string fish_completion(const Command& program);

}  // namespace tensorsmith::tools
