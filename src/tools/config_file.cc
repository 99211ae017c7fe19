#include "tools/config_file.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/input_file.h"
#include "base/nearest.h"
#include "record/database.h"
#include "tools/console.h"

namespace tensorsmith::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "tensorsmith.toml";

struct Key {
  const char* name;
  const char* option;
  bool is_number;
  bool of_device;  // says something about the device, and not about another one that the command line names
};
constexpr std::array<Key, 3> kKeys = {{{"device", "--device", false, true},
                                       {"threads", "--threads", true, true},
                                       {"database", "--db", false, false}}};

const Key* find_key(const std::string& name) {
  const auto found =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& key) { return key.name == name; });
  return found == kKeys.end() ? nullptr : &*found;
}

std::string trimmed(const std::string& text) {
  const char* kSpace = " \t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

bool is_comment(const std::string& text) { return text.empty() || text.front() == '#'; }

struct Value {
  std::string text;
  bool is_number = false;
};

// What stands behind the equals sign, without the comment behind it; none: no value that we read.
std::optional<Value> parse_value(const std::string& text) {
  const char quote = text.empty() ? '\0' : text.front();
  if (quote == '"' || quote == '\'') {
    Value out;
    for (size_t i = 1; i < text.size(); ++i) {
      if (text[i] == quote)
        return is_comment(trimmed(text.substr(i + 1))) ? std::optional<Value>(out) : std::nullopt;
      if (quote == '"' && text[i] == '\\') {
        if (i + 1 >= text.size() || (text[i + 1] != '"' && text[i + 1] != '\\')) return std::nullopt;
        ++i;
      }
      out.text += text[i];
    }
    return std::nullopt;  // no closing quote
  }
  const std::string number = trimmed(text.substr(0, text.find('#')));
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return Value{number, true};
}

// The file to read, given with --config or not; empty: there is none.
std::string config_path(const std::string& given) {
  if (!given.empty()) return given;
  std::error_code ignored;
  if (fs::exists(kFileName, ignored)) return kFileName;
  const char* settings = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder;
  if (settings != nullptr && *settings != '\0') {
    folder = settings;
  } else if (home != nullptr && *home != '\0') {
    folder = fs::path(home) / ".config";
  }
  const fs::path path = folder / "tensorsmith" / kFileName;
  return !folder.empty() && fs::exists(path, ignored) ? path.string() : std::string();
}

CLI::App& chosen_command(CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : chosen_command(*chosen.back());
}

bool is_given(CLI::App& command, const char* name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

bool has_configurable(CLI::App& command) {
  return std::any_of(kKeys.begin(), kKeys.end(), [&](const Key& key) {
    const CLI::Option* option = command.get_option_no_throw(key.option);
    return option != nullptr && option->get_configurable();
  });
}

}  // namespace

Result<std::vector<ConfigEntry>> parse_config(const std::string& text, const std::string& path) {
  std::vector<ConfigEntry> entries;
  std::istringstream in(text);
  int number = 0;
  for (std::string raw; std::getline(in, raw);) {
    const std::string line = trimmed(raw);
    ++number;
    if (is_comment(line)) continue;
    const auto wrong = [&](const std::string& reason) {
      return Error{ErrorCode::kInvalidArgument, path + ":" + std::to_string(number), reason};
    };
    std::vector<std::string> names;
    std::string list;
    for (const Key& key : kKeys) {
      names.emplace_back(key.name);
      list += (list.empty() ? "" : ", ") + names.back();
    }
    const size_t equals = line.find('=');
    if (equals == std::string::npos)
      return wrong("'" + line + "' is no setting; write KEY = VALUE, where KEY is one of " + list);
    const std::string name = trimmed(line.substr(0, equals));
    const Key* key = find_key(name);
    if (key == nullptr) {
      const std::string near = nearest(name, names);
      return wrong("unknown key '" + name + "'" +
                   (near.empty() ? "; " : " (did you mean '" + near + "'?); ") + "the keys are " + list);
    }
    const auto value = parse_value(trimmed(line.substr(equals + 1)));
    if (!value || value->is_number != key->is_number)
      return wrong(name + (key->is_number ? " takes a whole number, as in " + name + " = 8"
                                          : " takes a text in quotes, as in " + name + " = \"...\""));
    if (std::any_of(entries.begin(), entries.end(), [&](const ConfigEntry& e) { return e.key == name; }))
      return wrong("the key '" + name + "' is there twice");
    entries.push_back({name, value->text, number});
  }
  return entries;
}

void prepare_config(CLI::App& app) { app.option_defaults()->configurable(false); }

void add_config_options(CLI::App& app) {
  if (has_configurable(app))
    app.add_option("--config",
                   "Settings file to read instead of tensorsmith.toml in the current folder or in "
                   "~/.config/tensorsmith; with none, no file is read")
        ->type_name("FILE");
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    add_config_options(*command);
}

Status apply_config(CLI::App& app) {
  CLI::App& command = chosen_command(app);
  if (!has_configurable(command)) return {};
  const CLI::Option& asked = *command.get_option("--config");
  const std::string given = asked.count() > 0 ? asked.results().back() : "";
  if (given == "none") return {};
  const std::string path = config_path(given);
  if (path.empty()) return {};
  constexpr int64_t kMaxBytes = 1 << 16;
  TS_ASSIGN_OR_RETURN(const std::string text, read_input(path, kMaxBytes));
  TS_ASSIGN_OR_RETURN(const std::vector<ConfigEntry> entries, parse_config(text, path));
  std::string taken;
  const bool other_device = is_given(command, "--device");
  for (const ConfigEntry& entry : entries) {
    const Key& key = *find_key(entry.key);
    CLI::Option* option = command.get_option_no_throw(key.option);
    if (option == nullptr || !option->get_configurable() || option->count() > 0) continue;
    if (key.of_device && other_device) continue;
    try {
      option->default_val(entry.value);
    } catch (const CLI::ParseError& error) {
      return Error{ErrorCode::kInvalidArgument, path + ":" + std::to_string(entry.line), error.what()};
    }
    taken += (taken.empty() ? "" : ", ") + entry.key + " " +
             (entry.key == "database" ? record::shown_database(entry.value) : entry.value);
  }
  if (!taken.empty() && !is_given(command, "--quiet")) print_notes({path + " says: " + taken});
  return {};
}

}  // namespace tensorsmith::tools
