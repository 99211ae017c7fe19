// `completion` and `man`: generate shell completions and manual pages for packages from the
// commands.
#include <filesystem>

#include "record/jsonl.h"
#include "tools/command_tree.h"
#include "tools/completion.h"
#include "tools/console.h"
#include "tools/install_commands.h"
#include "tools/man_pages.h"
#include "tools/options.h"

namespace tensorsmith::tools {
namespace {

Status write_pages(const Command& program, const std::string& folder, const ProgramVersion& version) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{ErrorCode::kIo, folder, "cannot be created: " + error.message()};
  for (const Command* command : all_commands(program)) {
    TS_ASSIGN_OR_RETURN(const auto writer,
                        record::AtomicFileWriter::open(folder + "/" + command->name('-') + ".1"));
    TS_RETURN_IF_ERROR(writer->write(man_page(program, *command, version)));
    TS_RETURN_IF_ERROR(writer->commit());
  }
  return {};
}

Result<std::string> page_of(const Command& program, const std::vector<std::string>& words,
                            const ProgramVersion& version) {
  std::string name = program.words.front();
  for (const std::string& word : words) name += " " + word;
  for (const Command* command : all_commands(program))
    if (command->name(' ') == name) return man_page(program, *command, version);
  return Error{ErrorCode::kNotFound, name, "is not a command; `tensorsmith --help` lists the commands"};
}

}  // namespace

void add_completion_command(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "Print a script that lets a shell complete Tensorsmith's commands and options");
  command->add_option("shell", *shell, "Name of the shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, shell, &exit_code] {
    exit_code = run_command([&]() -> Status {
      const Command program = command_tree(app);
      write_out(*shell == "bash"  ? bash_completion(program)
                : *shell == "zsh" ? zsh_completion(program)
                                  : fish_completion(program));
      return {};
    });
  });
}

void add_man_command(CLI::App& app, const std::string& version, const std::string& date, int& exit_code) {
  struct Options {
    std::vector<std::string> words;
    std::string folder;
  };
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("man", "Print the manual page of a command; `man -l -` shows it");
  auto* words = command->add_option(
      "command", o->words,
      "Words of the command, such as `db export`; without them the page of the whole program is printed");
  command->add_option("--all", o->folder, "Write the manual pages of all commands into this folder")
      ->excludes(words);
  command->callback([&app, o, version, date, &exit_code] {
    exit_code = run_command([&]() -> Status {
      const Command program = command_tree(app);
      if (!o->folder.empty()) return write_pages(program, o->folder, {version, date});
      TS_ASSIGN_OR_RETURN(const std::string page, page_of(program, o->words, {version, date}));
      write_out(page);
      return {};
    });
  });
}

}  // namespace tensorsmith::tools
