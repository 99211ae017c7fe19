// The commands and their options as data, of which manual pages and completions are written.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tensorsmith::tools {

// What stands for a value on the command line.
enum class ValueKind : uint8_t { kNone, kNumber, kChoice, kText };  // a text may name a file

struct CommandOption {
  std::vector<std::string> names;  // "-o", "--output"; of a positional its name
  ValueKind value = ValueKind::kNone;
  std::string placeholder;           // "N", "TEXT"; empty for a flag
  std::vector<std::string> choices;  // of kChoice
  std::string default_text;          // empty: none
  bool required = false, repeatable = false;
  std::vector<std::string> needs, excludes;  // names of others
  std::string help;
};

struct Command {
  std::vector<std::string> words;  // with the program's name first
  std::string summary, examples;
  std::vector<CommandOption> options, positionals;
  std::vector<Command> commands;

  std::string name(char between) const;  // the words: "tensorsmith db info", "tensorsmith-db-info"
};

Command command_tree(const CLI::App& app);
// The command and all below it, each before those below.
std::vector<const Command*> all_commands(const Command& command);

}  // namespace tensorsmith::tools
