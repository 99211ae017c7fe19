// The subcommands of `lm` that have files of their own.
#pragma once

#include <CLI/CLI.hpp>

namespace tensorsmith::tools {

void add_language_eval(CLI::App& lm, int& exit_code);
void add_language_loop(CLI::App& lm, int& exit_code);

}  // namespace tensorsmith::tools
