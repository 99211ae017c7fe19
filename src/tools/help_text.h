// What --help prints.
#pragma once

#include <cstddef>
#include <string>

#include "tools/command_tree.h"

namespace tensorsmith::tools {

// The command's summary, usage, arguments, options and commands by group, and examples, in lines of so many columns.
// Examples stay as they are, so that they can be pasted.
std::string help_text(const Command& command, size_t columns);

// Columns for text on standard output: COLUMNS of the environment, else the terminal's, else 80.
size_t output_columns();

}  // namespace tensorsmith::tools
