#include "tools/command_tree.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "tools/option_groups.h"

namespace tensorsmith::tools {
namespace {

// CLI11 appends the values of CLI::IsMember to the type: "TEXT:{llvm,c}".
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> out;
  const size_t begin = type.find('{'), end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return out;
  for (size_t at = begin + 1; at < end;) {
    const size_t comma = std::min(type.find(',', at), end);
    out.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

bool is_number(const std::string& type) {
  static const std::set<std::string> numbers = {"N", "X", "SHARE", "TIME", "INT", "UINT", "FLOAT"};
  return numbers.count(type) > 0;
}

std::vector<std::string> names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> out;
  for (const CLI::Option* option : options) out.push_back(option->get_name(option->get_positional()));
  std::sort(out.begin(), out.end());
  return out;
}

CommandOption read(const CLI::Option& option) {
  CommandOption out;
  if (option.get_positional()) {
    out.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  }
  out.help = option.get_description();
  out.group = option.get_group();
  out.required = option.get_required();
  out.needs = names_of(option.get_needs());
  out.excludes = names_of(option.get_excludes());
  if (option.get_items_expected_max() == 0) return out;
  const std::string type = option.get_type_name();
  out.placeholder = type.substr(0, type.find(':'));
  out.choices = choices_of(type);
  out.value = !out.choices.empty()         ? ValueKind::kChoice
              : is_number(out.placeholder) ? ValueKind::kNumber
                                           : ValueKind::kText;
  out.default_text = option.get_default_str();
  out.repeatable = option.get_expected_max() > 1;
  return out;
}

// Makes the members of each group adjacent, in the order in which the groups first occur; advanced
// ones are last.
template <class T>
void sort_by_group(std::vector<T>& members) {
  std::vector<std::string> groups;
  for (const T& member : members)
    if (std::find(groups.begin(), groups.end(), member.group) == groups.end()) groups.push_back(member.group);
  std::stable_partition(groups.begin(), groups.end(),
                        [](const std::string& group) { return group != kAdvancedGroup; });
  const auto place = [&](const T& member) { return std::find(groups.begin(), groups.end(), member.group); };
  std::stable_sort(members.begin(), members.end(),
                   [&](const T& a, const T& b) { return place(a) < place(b); });
}

Command read(const CLI::App& app, std::vector<std::string> words) {
  Command out;
  out.words = std::move(words);
  out.summary = app.get_description();
  out.group = app.get_group() == "Subcommands" ? "Commands" : app.get_group();
  constexpr std::string_view kHeading = "Examples:\n";
  out.examples = app.get_footer();
  if (out.examples.starts_with(kHeading)) out.examples.erase(0, kHeading.size());
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    (option->get_positional() ? out.positionals : out.options).push_back(read(*option));
  }
  sort_by_group(out.options);
  // CLI11 defines --help first; it is moved to the end of its group.
  if (!out.options.empty()) {
    const std::string first = out.options.front().group;
    const auto end = std::find_if(out.options.begin(), out.options.end(),
                                  [&](const CommandOption& option) { return option.group != first; });
    std::rotate(out.options.begin(), out.options.begin() + 1, end);
  }
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    std::vector<std::string> below = out.words;
    below.push_back(command->get_name());
    out.commands.push_back(read(*command, std::move(below)));
  }
  sort_by_group(out.commands);
  return out;
}

void append(const Command& command, std::vector<const Command*>& out) {
  out.push_back(&command);
  for (const Command& below : command.commands) append(below, out);
}

}  // namespace

std::string Command::name(char between) const {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += between;
    out += word;
  }
  return out;
}

Command command_tree(const CLI::App& app) { return read(app, {app.get_name()}); }

Command command_tree(const CLI::App& app, std::vector<std::string> words) {
  return read(app, std::move(words));
}

std::string properties(const CommandOption& option,
                       const std::function<std::string(std::string_view)>& shown) {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : "; ") + part; };
  const auto list = [&](const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + shown(name);
    return text;
  };
  if (!option.choices.empty()) add("one of " + list(option.choices));
  if (!option.default_text.empty()) add("default " + shown(option.default_text));
  if (option.required && option.names.front().front() == '-') add("required");
  if (!option.needs.empty()) add("needs " + list(option.needs));
  if (!option.excludes.empty()) add("not with " + list(option.excludes));
  return out;
}

std::vector<const Command*> all_commands(const Command& command) {
  std::vector<const Command*> out;
  append(command, out);
  return out;
}

}  // namespace tensorsmith::tools
