#include "tools/suggest.h"

#include <algorithm>
#include <vector>

namespace tensorsmith::tools {
namespace {

// The subcommand that the line got to.
const CLI::App& reached(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : reached(*chosen.back());
}

std::vector<std::string> option_names(const CLI::App& app, bool options) {
  std::vector<std::string> out;
  if (options) {
    for (const CLI::Option* option : app.get_options())
      for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
  } else {
    for (const CLI::App* command : app.get_subcommands(nullptr)) out.push_back(command->get_name());
  }
  return out;
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string> names) {
  const std::string* best = nullptr;
  size_t least = std::max<size_t>(word.size() / 3, 1) + 1;
  for (const std::string& name : names) {
    const size_t distance = edit_distance(word, name);
    if (distance < least) {
      least = distance;
      best = &name;
    }
  }
  return best == nullptr ? "" : *best;
}

std::string did_you_mean(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) return "";
  const std::string word = unknown.front().substr(0, unknown.front().find('='));
  const bool option = word.size() > 2 && word.compare(0, 2, "--") == 0;
  if (!option && word.compare(0, 1, "-") == 0) return "";
  const std::vector<std::string> names = option_names(reached(app), option);
  const std::string found = nearest(word, names);
  return found.empty() ? "" : "Did you mean `" + found + "`?\n";
}

}  // namespace tensorsmith::tools
