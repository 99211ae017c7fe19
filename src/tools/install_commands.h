// `completion` and `man`, whose output a package installs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tensorsmith::tools {

void add_completion_command(CLI::App& app, int& exit_code);
// version and date stand in the page: "0.1.0", "2026-11-26".
void add_man_command(CLI::App& app, const std::string& version, const std::string& date, int& exit_code);

}  // namespace tensorsmith::tools
