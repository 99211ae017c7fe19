// Manual pages of the commands, in roff's man macros.
#pragma once

#include <string>

#include "tools/command_tree.h"

namespace tensorsmith::tools {

struct ProgramVersion {
  std::string version, date;  // "0.1.0", "2026-11-26"
};

// Returns the page of one command. Its name is that of the command with dashes, in section 1:
// "tensorsmith-db-info.1".
std::string man_page(const Command& program, const Command& command, const ProgramVersion& version);

}  // namespace tensorsmith::tools
