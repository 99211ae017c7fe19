// tensorsmith.toml: default device, threads and database for commands whose command line does not
// set them.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tensorsmith::tools {

struct ConfigEntry {
  std::string key, value;
  int line = 0;
};

// Parses the settings of a TOML file. kInvalidArgument with the line as the place: not TOML, an
// unknown key, or a value of the wrong type.
Result<std::vector<ConfigEntry>> parse_config(const std::string& text, const std::string& path);

// From now on a file can set only options that are marked with configurable(). Must be called
// before commands are added.
void prepare_config(CLI::App& app);
// Adds --config to each command with configurable options. Must be called after commands were
// added.
void add_config_options(CLI::App& app);
// Sets the file's values as defaults of the chosen command's options: options on the command line
// keep their values, and option counts stay those of the command line. The file's device and
// threads belong together: if the command line names a device, both are ignored. Prints a note
// about the values taken.
// The file is that of --config; else tensorsmith.toml in the current directory, else in the user's
// configuration directory ($XDG_CONFIG_HOME/tensorsmith, ~/.config/tensorsmith), else there is
// none.
Status apply_config(CLI::App& app);

}  // namespace tensorsmith::tools
