#include "tools/man_pages.h"

#include <algorithm>
#include <cctype>

namespace tensorsmith::tools {
namespace {

// Escapes text for roff so that every character is literal at any position of a line.
std::string man_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool first = out.empty() || out.back() == '\n';
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '.':
        out += first ? "\\&." : ".";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + man_escaped(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + man_escaped(text) + "\\fR"; }

std::string joined(const std::vector<std::string>& parts, const std::string& between) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : between) + part;
  return out;
}

std::string bold_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + bold(name);
  return out;
}

std::string positional_text(const CommandOption& option) {
  const std::string text = italic(option.names.front()) + (option.repeatable ? "..." : "");
  return option.required ? text : "[" + text + "]";
}

void add_option(const CommandOption& option, std::string& out) {
  std::string value;
  if (option.value != ValueKind::kNone && option.names.front().front() == '-')
    value = " " + italic(option.placeholder);
  out += ".TP\n";
  out += option.names.front().front() == '-' ? bold_list(option.names) + value : positional_text(option);
  out += "\n" + man_escaped(option.help);
  const std::string more = properties(option, bold);
  if (!more.empty()) out += "\n(" + more + ")";
  out += "\n";
}

std::string synopsis(const Command& command) {
  const std::string start = ".B " + man_escaped(command.name(' ')) + "\n";
  std::string out;
  if (!command.positionals.empty() || command.commands.empty()) {
    out += start + "[" + italic("options") + "]";
    for (const CommandOption& positional : command.positionals) out += " " + positional_text(positional);
    out += "\n";
  }
  if (!command.commands.empty()) out += (out.empty() ? "" : ".br\n") + start + italic("command") + " ...\n";
  return out;
}

std::string reference(const Command& command) { return ".BR " + man_escaped(command.name('-')) + " (1)"; }

}  // namespace

std::string man_page(const Command& program, const Command& command, const ProgramVersion& version) {
  std::string title = command.name('-');
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string out = ".TH " + man_escaped(title) + " 1 " + version.date + " \"" +
                    man_escaped(program.words.front() + " " + version.version) + "\" \"User Commands\"\n";
  const bool is_program = &command == &program;
  out += ".SH NAME\n" + man_escaped(command.name('-')) + " \\- " +
         man_escaped(is_program ? std::string("Tune, compile and run neural networks") : command.summary) +
         "\n";
  out += ".SH SYNOPSIS\n" + synopsis(command);
  out += ".SH DESCRIPTION\n" + man_escaped(command.summary) + (command.summary.ends_with('.') ? "\n" : ".\n");
  if (!command.positionals.empty()) {
    out += ".SH ARGUMENTS\n";
    for (const CommandOption& positional : command.positionals) add_option(positional, out);
  }
  if (!command.commands.empty()) {
    out += ".SH COMMANDS\n";
    std::string group = command.commands.front().group;
    // A single group needs no heading.
    const bool headings = group != command.commands.back().group;
    for (const Command& below : command.commands) {
      if (headings && (&below == &command.commands.front() || below.group != group))
        out += ".SS " + man_escaped(below.group) + "\n";
      group = below.group;
      out += ".TP\n" + reference(below) + "\n" + man_escaped(below.summary) + "\n";
    }
  }
  out += ".SH OPTIONS\n";
  std::string group;
  for (const CommandOption& option : command.options) {
    if (!group.empty() && option.group != group) out += ".SS " + man_escaped(option.group) + "\n";
    group = option.group;
    add_option(option, out);
  }
  if (!command.examples.empty()) out += ".SH EXAMPLES\n.EX\n" + man_escaped(command.examples) + "\n.EE\n";
  out +=
      ".SH EXIT STATUS\n0: success. 1: the request failed; a line on standard error gives the reason. 2: "
      "wrong usage. 3: a bug in Tensorsmith. 130: interrupted.\n";
  if (!is_program) {
    out += ".SH SEE ALSO\n";
    std::vector<std::string> others = {reference(program)};
    for (const Command* other : all_commands(program))
      if (other != &program && other->words.size() < command.words.size() &&
          std::equal(other->words.begin(), other->words.end(), command.words.begin()))
        others.push_back(reference(*other));
    out += joined(others, " ,\n") + "\n";
  }
  return out;
}

}  // namespace tensorsmith::tools
