// tensorsmith.toml: the device, its threads and the database that commands take where their command line names none.
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

// Reads the settings of a TOML file. kInvalidArgument, the place is the line: no TOML, a key that is not known, a text
// for a number and the other way round.
Result<std::vector<ConfigEntry>> parse_config(const std::string& text, const std::string& path);

// From now on only options that are marked with configurable() are set by a file. Before commands are added.
void prepare_config(CLI::App& app);
// Adds --config to each command that has such options. After commands were added.
void add_config_options(CLI::App& app);
// Gives the options of the command that was chosen the file's values, as defaults: an option that the command line has
// keeps its value, and counts of options stay those of the command line. The file's device and threads belong together:
// where the command line names a device, neither is taken. Says in a note what was taken.
// The file is that of --config; else tensorsmith.toml in the current folder, else in the user's folder of settings
// ($XDG_CONFIG_HOME/tensorsmith, ~/.config/tensorsmith), else there is none.
Status apply_config(CLI::App& app);

}  // namespace tensorsmith::tools
