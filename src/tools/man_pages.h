// Manual pages of the commands, in roff's man macros.
#pragma once

#include <string>

#include "tools/command_tree.h"

namespace tensorsmith::tools {

struct ProgramVersion {
  std::string version, date;  // "0.1.0", "2026-11-26"
};

// The page of one command of the program; its name is that of the command with dashes and section 1:
// "tensorsmith-db-info.1".
std::string man_page(const Command& program, const Command& command, const ProgramVersion& version);

}  // namespace tensorsmith::tools
