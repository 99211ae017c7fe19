#include "tools/config_file.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>

// Debian's library of toml++ has only the functions that throw.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

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
  // Part of the device's settings, which is ignored if the command line names another device.
  bool of_device;
};
constexpr std::array<Key, 3> kKeys = {{{"device", "--device", false, true},
                                       {"threads", "--threads", true, true},
                                       {"database", "--db", false, false}}};

const Key* find_key(const std::string& name) {
  const auto found =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& key) { return key.name == name; });
  return found == kKeys.end() ? nullptr : &*found;
}

// Returns the setting's value as on the command line; nullopt if its type is not the key's.
std::optional<std::string> text_of(const Key& key, const toml::node& node) {
  if (key.is_number) {
    const auto* value = node.as_integer();
    return value == nullptr ? std::nullopt : std::optional(std::to_string(value->get()));
  }
  const auto* value = node.as_string();
  return value == nullptr ? std::nullopt : std::optional(value->get());
}

// Returns the file to read; empty: none. `given`: the value of --config, or empty.
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
  const auto wrong = [&](const toml::source_region& where, const std::string& reason) {
    return Error{ErrorCode::kInvalidArgument, path + ":" + std::to_string(where.begin.line), reason};
  };
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed)
    return wrong(parsed.error().source(),
                 "not TOML: " + std::string(parsed.error().description()) +
                     "; write lines such as threads = 8 or device = \"...\", with quotes around a text");
  std::vector<std::string> names;
  std::string list;
  for (const Key& key : kKeys) {
    names.emplace_back(key.name);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  std::vector<ConfigEntry> entries;
  for (const auto& [toml_key, node] : parsed.table()) {
    const std::string name(toml_key.str());
    const Key* key = find_key(name);
    if (key == nullptr) {
      const std::string near = nearest(name, names);
      return wrong(toml_key.source(), "unknown key '" + name + "'" +
                                          (near.empty() ? "; " : " (did you mean '" + near + "'?); ") +
                                          "the keys are " + list);
    }
    const auto value = text_of(*key, node);
    if (!value)
      return wrong(toml_key.source(),
                   name + (key->is_number ? " takes a whole number, as in " + name + " = 8"
                                          : " takes a text in quotes, as in " + name + " = \"...\""));
    entries.push_back({name, *value, static_cast<int>(toml_key.source().begin.line)});
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.line < b.line; });
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
