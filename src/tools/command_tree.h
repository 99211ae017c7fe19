// The commands and their options as data, from which the help, manual pages and completions are
// generated.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorsmith::tools {

// The kind of value that an option takes.
enum class ValueKind : uint8_t { kNone, kNumber, kChoice, kText };  // kText may name a file

struct CommandOption {
  std::vector<std::string> names;  // "-o", "--output"; for a positional its name
  ValueKind value = ValueKind::kNone;
  std::string placeholder;           // "N", "TEXT"; empty for a flag
  std::vector<std::string> choices;  // for kChoice
  std::string default_text;          // empty: none
  bool required = false, repeatable = false;
  std::vector<std::string> needs, excludes;  // names of other options
  std::string help;
  std::string group;  // heading of the option in the help
};

struct Command {
  std::vector<std::string> words;  // starting with the program's name
  std::string summary, examples;
  std::string group;                   // heading of the command among its siblings
  std::vector<CommandOption> options;  // by group, basic options first
  std::vector<CommandOption> positionals;
  std::vector<Command> commands;  // by group

  std::string name(char between) const;  // joins the words: "tensorsmith db info", "tensorsmith-db-info"
};

Command command_tree(const CLI::App& app);
// As above, for one command and its sub-commands. `words`: the program's name and the command's
// words.
Command command_tree(const CLI::App& app, std::vector<std::string> words);
// Returns the command and all its sub-commands, parents first.
std::vector<const Command*> all_commands(const Command& command);

// Returns the text after an option's description: "one of a, b; default a; not with --y". `shown`
// formats a word of the command line.
std::string properties(const CommandOption& option,
                       const std::function<std::string(std::string_view)>& shown);

}  // namespace tensorsmith::tools
