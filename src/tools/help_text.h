// The text that --help prints.
#pragma once

#include <cstddef>
#include <string>

#include "tools/command_tree.h"

namespace tensorsmith::tools {

// Formats the command's summary, usage, arguments, options and commands by group, and examples for
// this number of columns. Examples are not wrapped, so that they can be pasted.
std::string help_text(const Command& command, size_t columns);

// Width for text on standard output: the environment's COLUMNS, else the terminal's width, else 80.
size_t output_columns();

}  // namespace tensorsmith::tools
