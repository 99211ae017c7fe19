#include "tools/suggest.h"

#include <algorithm>
#include <vector>

#include "base/nearest.h"

namespace tensorsmith::tools {
namespace {

using WordList = std::vector<std::string>;

WordList command_words(const CLI::App& app) {
  WordList out;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    out.push_back(command->get_name());
  return out;
}

WordList option_words(const CLI::App& app) {
  WordList out;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
  return out;
}

// Returns the words that invoke the command: "tensorsmith db"; without the program "db ".
std::string called_by(const CLI::App& app, bool with_program) {
  const CLI::App* parent = app.get_parent();
  if (parent == nullptr) return with_program ? app.get_name() : "";
  const std::string before = called_by(*parent, with_program);
  return with_program ? before + " " + app.get_name() : before + app.get_name() + " ";
}

// Returns the only option that begins with the letter, "-v" -> "--version"; empty if there is none
// or several.
std::string option_of_letter(char letter, const WordList& options) {
  std::string found;
  for (const std::string& name : options) {
    if (name[2] != letter) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

std::string advice(const std::string& what, const std::string& suggestion, const std::string& otherwise) {
  return what + (suggestion.empty() ? "; " + otherwise : "; did you mean `" + suggestion + "`?");
}

}  // namespace

std::string unknown_word(const CLI::App& app, const std::string& given) {
  const std::string word = given.substr(0, given.find('='));
  const WordList commands = command_words(app), options = option_words(app);
  const std::string help = "`" + called_by(app, true) + " --help` lists the ";
  if (word.size() > 1 && word[0] == '-') {
    const std::string found = word[1] == '-' ? nearest(word, options) : option_of_letter(word[1], options);
    return advice("unknown option '" + word + "'", found, help + "options");
  }
  if (commands.empty()) return advice("unexpected argument '" + given + "'", "", help + "arguments");
  const std::string before = called_by(app, false);
  std::string found = nearest(given, commands);
  if (!found.empty()) {
    found = before + found;
  } else if (std::find(options.begin(), options.end(), "--" + given) != options.end()) {
    found = "--" + given;
  }
  return advice("unknown command '" + before + given + "'", found, help + "commands");
}

std::string unknown_word(const CLI::App& app) {
  const WordList own = app.remaining(false);
  if (!own.empty()) return unknown_word(app, own.front());
  for (const CLI::App* command : app.get_subcommands()) {
    if (std::string found = unknown_word(*command); !found.empty()) return found;
  }
  return "";
}

}  // namespace tensorsmith::tools
