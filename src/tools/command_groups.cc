#include <algorithm>
#include <string>
#include <vector>

#include "tools/commands.h"

namespace tensorsmith::tools {
namespace {

struct Group {
  const char* heading;
  std::vector<const char*> commands;
};

// Groups all commands of the program; the first group has what most users need and comes first in
// the help.
const std::vector<Group>& groups() {
  static const std::vector<Group> all = {
      {"Commands", {"tune", "bench", "run", "compile", "predict", "report", "tasks", "zoo", "devices", "db"}},
      {"Records of other models and machines", {"transfer", "worker"}},
      {"Laboratory: cost models and data",
       {"dataset", "train", "eval", "calibrate", "search-hyperparameters", "profile", "explain"}},
      {"Laboratory: comparisons and language models", {"compare", "lm"}},
      {"Help", {"help", "man", "completion"}}};
  return all;
}

}  // namespace

void group_commands(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const auto lists = [&](const Group& group) {
      return std::find(group.commands.begin(), group.commands.end(), command->get_name()) !=
             group.commands.end();
    };
    const auto found = std::find_if(groups().begin(), groups().end(), lists);
    if (found != groups().end()) command->group(found->heading);
  }
}

}  // namespace tensorsmith::tools
