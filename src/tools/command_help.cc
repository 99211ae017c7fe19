// `help`: prints the same text as --help.
#include <memory>
#include <string>
#include <vector>

#include "tools/commands.h"
#include "tools/console.h"
#include "tools/suggest.h"

namespace tensorsmith::tools {
namespace {

int print_help(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* command = &program;
  std::string before = program.get_name();  // as in the usage line
  for (const std::string& word : words) {
    const auto found = command->get_subcommands([&](const CLI::App* c) { return c->get_name() == word; });
    if (found.empty()) {
      print_error("tensorsmith: error: {}\n", unknown_word(*command, word));
      return kExitUsage;
    }
    command = found.front();
    before += " " + word;
  }
  write_out(command->get_formatter()->make_help(command, before, CLI::AppFormatMode::Normal));
  return 0;
}

}  // namespace

void add_help_command(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "Show the help of a command, as its --help does");
  command->add_option("command", *words,
                      "The words of the command, such as `db export`; none: the program's help");
  command->callback([&app, words, &exit_code] { exit_code = print_help(app, *words); });
}

}  // namespace tensorsmith::tools
