// The commands `completion` and `man`, whose output packages install.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tensorsmith::tools {

void add_completion_command(CLI::App& app, int& exit_code);
// The page states version and date: "0.1.0", "2026-11-26".
void add_man_command(CLI::App& app, const std::string& version, const std::string& date, int& exit_code);

}  // namespace tensorsmith::tools
