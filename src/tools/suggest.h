// Error messages for unknown words on the command line, with the nearest known word.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tensorsmith::tools {

// Returns one line, without a newline, about a word that `app` does not know as a command, option
// or argument: "unknown command 'db inof'; did you mean `db info`?", "unknown option '--trails';
// did you mean `--trials`?". If no known word is near, it names the --help that lists them.
std::string unknown_word(const CLI::App& app, const std::string& word);

// As above, for the first unknown word of the command line; empty if there is none. Must be called
// after app.parse() failed.
std::string unknown_word(const CLI::App& app);

}  // namespace tensorsmith::tools
