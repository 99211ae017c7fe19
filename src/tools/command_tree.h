// The commands and their options as data, of which the help, manual pages and completions are written.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
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
  std::string group;  // the heading that it stands under
};

struct Command {
  std::vector<std::string> words;  // with the program's name first
  std::string summary, examples;
  std::string group;                   // the heading that it stands under among its neighbours
  std::vector<CommandOption> options;  // by group, that of basic options first
  std::vector<CommandOption> positionals;
  std::vector<Command> commands;  // by group

  std::string name(char between) const;  // the words: "tensorsmith db info", "tensorsmith-db-info"
};

Command command_tree(const CLI::App& app);
// The same of one command and those below it. words: the program's name and the command's own.
Command command_tree(const CLI::App& app, std::vector<std::string> words);
// The command and all below it, each before those below.
std::vector<const Command*> all_commands(const Command& command);

// What stands behind an option's description: "one of a, b; default a; not with --y". shown: how a word of the command
// line is written.
std::string properties(const CommandOption& option,
                       const std::function<std::string(std::string_view)>& shown);

}  // namespace tensorsmith::tools
