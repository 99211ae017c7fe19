#include "tools/help_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace tensorsmith::tools {
namespace {

constexpr size_t kFewestColumns = 40, kUsualColumns = 80;
// Column where descriptions begin; in a narrow terminal at most a third of its width.
constexpr size_t kDescriptionColumn = 28;

// Appends the words of a text with line breaks. `column` is the current column; continued lines
// begin at `indent`.
void add_words(std::string_view text, size_t columns, size_t indent, size_t column, std::string& out) {
  bool first = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!first && column + 1 + word.size() > columns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      first = true;
    }
    if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
  }
}

// Appends "  name   description" with the description in its own column.
void add_entry(const std::string& name, const std::string& description, size_t columns, std::string& out) {
  const size_t indent = std::min(kDescriptionColumn, columns / 3);
  out += "  " + name;
  size_t column = 2 + name.size();
  if (!description.empty()) {
    if (column + 2 > indent) {
      out += "\n";
      column = 0;
    }
    out += std::string(indent - column, ' ');
    add_words(description, columns, indent, indent, out);
  }
  out += "\n";
}

void add_option(const CommandOption& option, size_t columns, std::string& out) {
  const bool positional = option.names.front().front() != '-';
  std::string name;
  for (const std::string& one : option.names) name += (name.empty() ? "" : ", ") + one;
  if (positional && option.repeatable) name += " ...";
  if (!positional && option.value != ValueKind::kNone) name += " " + option.placeholder;
  std::string description = option.help;
  const std::string more = properties(option, [](std::string_view word) { return std::string(word); });
  if (!more.empty()) {
    // Merges "(0 = no limit)" and "(default 0)".
    const bool goes_on = description.ends_with(')');
    if (goes_on) description.pop_back();
    description += (goes_on ? "; " : description.empty() ? "(" : " (") + more + ")";
  }
  add_entry(name, description, columns, out);
}

std::string usage(const Command& command) {
  std::string out = "Usage: " + command.name(' ') + " [OPTIONS]";
  for (const CommandOption& positional : command.positionals) {
    const std::string name = positional.names.front() + (positional.repeatable ? "..." : "");
    out += positional.required ? " " + name : " [" + name + "]";
  }
  return out + (command.commands.empty() ? "" : " COMMAND ...");
}

}  // namespace

std::string help_text(const Command& command, size_t columns) {
  columns = std::max(columns, kFewestColumns);
  std::string out;
  add_words(command.summary, columns, 0, 0, out);
  out += "\n";
  add_words(usage(command), columns, 2, 0, out);
  out += "\n";
  if (!command.positionals.empty()) {
    out += "\nArguments:\n";
    for (const CommandOption& positional : command.positionals) add_option(positional, columns, out);
  }
  const auto add_commands = [&] {
    std::string group;
    for (const Command& below : command.commands) {
      if (below.group != group) out += "\n" + below.group + ":\n";
      group = below.group;
      add_entry(below.words.back(), below.summary, columns, out);
    }
  };
  // The program's own help lists the commands first.
  const bool program = command.words.size() == 1;
  if (program) add_commands();
  std::string group;
  for (const CommandOption& option : command.options) {
    if (option.group != group) out += "\n" + option.group + ":\n";
    group = option.group;
    add_option(option, columns, out);
  }
  if (!program) add_commands();
  if (!command.examples.empty()) out += "\nExamples:\n" + command.examples + "\n";
  return out;
}

size_t output_columns() {
  const char* given = std::getenv("COLUMNS");
  if (given != nullptr) {
    const std::string_view text = given;
    size_t columns = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (error == std::errc() && end == text.data() + text.size() && columns > 0) return columns;
  }
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kUsualColumns;
}

}  // namespace tensorsmith::tools
