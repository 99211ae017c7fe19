#include "tools/completion.h"

namespace tensorsmith::tools {
namespace {

// Escapes text for single quotes and for a description of _arguments, where colons and brackets are
// special.
std::string zsh_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      out += '\\';
      out += c;
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out;
}

std::string action(const CommandOption& option) {
  if (option.value == ValueKind::kNumber) return " ";
  if (option.value == ValueKind::kText) return "_files";
  std::string out;
  for (const std::string& choice : option.choices) out += (out.empty() ? "(" : " ") + choice;
  return out + ")";
}

std::string function_of(const Command& command) { return "_" + command.name('_'); }

// Makes one spec of _arguments per name; an option that is not repeatable excludes its other names.
std::string spec(const CommandOption& option) {
  std::string all;
  for (const std::string& name : option.names) all += (all.empty() ? "" : " ") + name;
  const std::string before = option.repeatable ? "*" : "(" + all + ")";
  std::string after = "[" + zsh_escaped(option.help) + "]";
  if (option.value != ValueKind::kNone) after += ":" + zsh_escaped(option.placeholder) + ":" + action(option);
  std::string out;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    out +=
        " \\\n    '" + before + name + (is_long && option.value != ValueKind::kNone ? "=" : "") + after + "'";
  }
  return out;
}

std::string definition(const Command& command) {
  const std::string function = function_of(command);
  std::string out;
  if (!command.commands.empty()) {
    out += function + "_commands() {\n  local -a commands\n  local found=1\n";
    // One list per group, under its heading.
    for (size_t i = 0; i < command.commands.size(); ++i) {
      const Command& below = command.commands[i];
      if (i == 0 || command.commands[i - 1].group != below.group) out += "  commands=(\n";
      out += "    '" + below.words.back() + ":" + zsh_escaped(below.summary) + "'\n";
      if (i + 1 == command.commands.size() || command.commands[i + 1].group != below.group)
        out += "  )\n  _describe -t commands '" + zsh_escaped(below.group) + "' commands && found=0\n";
    }
    if (!command.positionals.empty()) out += "  _files && found=0\n";
    out += "  return found\n}\n\n";
  }
  out += function + "() {\n";
  if (!command.commands.empty()) {
    out += "  if (( CURRENT > 2 )); then\n    case $words[2] in\n";
    for (const Command& below : command.commands)
      out += "      " + below.words.back() + ") shift words; (( CURRENT-- )); " + function_of(below) +
             "; return ;;\n";
    out += "    esac\n  fi\n";
  }
  out += "  _arguments -s";
  for (const CommandOption& option : command.options) out += spec(option);
  size_t place = 0;
  if (!command.commands.empty()) {
    out += " \\\n    '1:command:" + function + "_commands'";
    place = 1;
  }
  for (const CommandOption& positional : command.positionals) {
    ++place;
    if (place == 1 || command.commands.empty())
      out += " \\\n    '" + (positional.repeatable ? "*" : std::to_string(place)) + ":" +
             zsh_escaped(positional.names.front()) + ":" + action(positional) + "'";
  }
  return out + "\n}\n\n";
}

}  // namespace

std::string zsh_completion(const Command& program) {
  const std::string& name = program.words.front();
  std::string out = "#compdef " + name + "\n# Made by `" + name + " completion zsh`.\n\n";
  for (const Command* command : all_commands(program)) out += definition(*command);
  return out + function_of(program) + " \"$@\"\n";
}

}  // namespace tensorsmith::tools
