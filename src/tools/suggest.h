// What is said of a word that the command line does not know: its name, and the known word nearest to it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tensorsmith::tools {

// One line, without a newline, about a word that stands where `app` looks for its commands, options or arguments:
// "unknown command 'db inof'; did you mean `db info`?", "unknown option '--trails'; did you mean `--trials`?". Where nothing
// is near, it says which --help has a list.
std::string unknown_word(const CLI::App& app, const std::string& word);

// The same about the first word of the line that nothing knows; empty if there is none. After app.parse() failed.
std::string unknown_word(const CLI::App& app);

}  // namespace tensorsmith::tools
