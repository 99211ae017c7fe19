#include <memory>

#include "tools/commands.h"
#include "tools/console.h"
#include "tools/numbers.h"

namespace tensorsmith::tools {

void add_toy_command(CLI::App& app, int& exit_code) {
  auto times = std::make_shared<int>(1);
  CLI::App* command = app.add_subcommand("toy", "Print the word toy");
  add_whole(*command, "--times", *times, 1, 100, "Number of lines to print");
  command->callback([times, &exit_code] {
    for (int i = 0; i < *times; ++i) print_out("toy\n");
    exit_code = 0;
  });
}

}  // namespace tensorsmith::tools
