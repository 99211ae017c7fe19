#include "tools/completion.h"

namespace tensorsmith::tools {
namespace {

// Walks the words up to the command under the cursor, then completes a value, an option, a command
// or a file. Readline splits --option=value into three words.
constexpr const char* kBashWalk = R"(
_%_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_%() {
  local command=% current=${COMP_WORDS[COMP_CWORD]} option='' word i
  local commands options valued positional choices
  COMPREPLY=()
  [[ $current != '=' ]] || current=
  _%_words "$command"
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    [[ $word ]] || continue
    if [[ " $valued " == *" $word "* ]]; then
      [[ ${COMP_WORDS[i + 1]} != '=' || $((i + 1)) -ge $COMP_CWORD ]] || ((++i))
      ((++i < COMP_CWORD)) || option=$word
    elif [[ " $commands " == *" $word "* ]]; then
      command+=" $word"
      _%_words "$command"
    fi
  done
  if [[ $option ]]; then
    _%_choices "$command $option"
    if [[ ! $choices ]]; then
      _%_files "$current"
    elif [[ $choices != '#' ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")
    fi
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
    if [[ $positional == / ]]; then
      [[ ${#COMPREPLY[@]} -gt 0 ]] || _%_files "$current"
    elif [[ $positional ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$positional" -- "$current")
    fi
  fi
}

complete -F _% %
)";

std::string with_program_name(std::string text, const std::string& name) {
  for (size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at))
    text.replace(at, 1, name);
  return text;
}

std::string words_of(const Command& command) {
  std::string commands, options, valued, positional;  // the last, `positional`: "/" for a file, or words
  for (const Command& below : command.commands) commands += " " + below.words.back();
  for (const CommandOption& option : command.options) {
    for (const std::string& name : option.names) {
      options += " " + name;
      if (option.value != ValueKind::kNone) valued += " " + name;
    }
  }
  for (const CommandOption& option : command.positionals) {
    if (option.value == ValueKind::kText) positional = "/";
    for (const std::string& choice : option.choices) positional += (positional.empty() ? "" : " ") + choice;
  }
  const auto quoted = [](const std::string& list) {
    return "'" + (list.empty() ? list : list.substr(1)) + "'";
  };
  return "  '" + command.name(' ') + "')\n    commands=" + quoted(commands) +
         "\n    options=" + quoted(options) + "\n    valued=" + quoted(valued) + "\n    positional='" +
         positional + "' ;;\n";
}

std::string bash_choices(const Command& command) {
  std::string out;
  for (const CommandOption& option : command.options) {
    if (option.value != ValueKind::kChoice && option.value != ValueKind::kNumber) continue;
    std::string patterns, values;
    for (const std::string& name : option.names)
      patterns += (patterns.empty() ? "'" : " | '") + command.name(' ') + " " + name + "'";
    for (const std::string& choice : option.choices) values += (values.empty() ? "" : " ") + choice;
    out += "  " + patterns + ") choices='" + (values.empty() ? "#" : values) + "' ;;\n";
  }
  return out;
}

}  // namespace

std::string bash_completion(const Command& program) {
  const std::string& name = program.words.front();
  std::string out = "# bash completion for " + name + ", made by `" + name + " completion bash`.\n\n_" +
                    name + "_words() {\n  case $1 in\n";
  for (const Command* command : all_commands(program)) out += words_of(*command);
  out += "  esac\n}\n\n# Of options without a file: their values, or # for a number.\n_" + name +
         "_choices() {\n  choices=\n  case $1 in\n";
  for (const Command* command : all_commands(program)) out += bash_choices(*command);
  return out + "  esac\n}\n" + with_program_name(kBashWalk, name);
}

}  // namespace tensorsmith::tools
