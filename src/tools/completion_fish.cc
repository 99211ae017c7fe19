#include "tools/completion.h"

namespace tensorsmith::tools {
namespace {

// Finds the command under the cursor. The value of an option is not taken for a command.
constexpr const char* kFishWalk = R"(
function __%_command
    set -l command %
    set -l skip 0
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
        else if contains -- "$command $word" $__%_commands
            set command "$command $word"
        else if contains -- "$command $word" $__%_valued
            set skip 1
        end
    end
    echo $command
end

)";

std::string with_name(std::string text, const std::string& name) {
  for (size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at))
    text.replace(at, 1, name);
  return text;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

std::string joined_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string option_line(const CommandOption& option, const std::string& start) {
  std::string out = start;
  for (const std::string& name : option.names)
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (option.value == ValueKind::kText) out += " -r -F";
  if (option.value == ValueKind::kNumber) out += " -x";
  if (option.value == ValueKind::kChoice) out += " -x -a " + quoted(joined_words(option.choices));
  return out + " -d " + quoted(option.help) + "\n";
}

}  // namespace

std::string fish_completion(const Command& program) {
  const std::string& name = program.words.front();
  const std::vector<const Command*> all = all_commands(program);
  std::string out = "# fish completion for " + name + ", made by `" + name + " completion fish`.\n\n";
  out += "set -g __" + name + "_commands";
  for (const Command* command : all)
    if (command != &program) out += " \\\n    " + quoted(command->name(' '));
  out += "\nset -g __" + name + "_valued";
  for (const Command* command : all) {
    for (const CommandOption& option : command->options) {
      if (option.value == ValueKind::kNone) continue;
      for (const std::string& option_name : option.names)
        out += " \\\n    " + quoted(command->name(' ') + " " + option_name);
    }
  }
  out += "\n" + with_name(kFishWalk, name);
  for (const Command* command : all) {
    const std::string here = "test (__" + name + "_command) = \"" + command->name(' ') + "\"";
    const std::string start = "complete -c " + name + " -n " + quoted(here);
    bool files = false;
    for (const CommandOption& positional : command->positionals) {
      files = files || positional.value == ValueKind::kText;
      if (!positional.choices.empty())
        out += start + " -a " + quoted(joined_words(positional.choices)) + "\n";
    }
    if (!files) out += start + " -f\n";
    for (const Command& below : command->commands)
      out += start + " -a " + below.words.back() + " -d " + quoted(below.summary) + "\n";
    for (const CommandOption& option : command->options) out += option_line(option, start);
  }
  return out;
}

}  // namespace tensorsmith::tools
