// Helpers of the commands on profiled programs: reading them and showing ranking scores.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "learn/profile/rank_sets.h"

namespace tensorsmith::tools {

// Reads the profiles and prints how many were left out and why. `tasks`: only tasks whose name begins
// with one of these words; empty: all.
Result<learn::ProfiledPrograms> read_profiles(const std::vector<std::string>& databases,
                                              const std::string& profiler,
                                              const std::vector<std::string>& tasks);

// Adds --draws and --set-size.
std::vector<CLI::Option*> add_set_options(CLI::App& command, learn::RankSetOptions& options);

nlohmann::json rank_json(const learn::RankScores& scores);
// Cells of a table row, and the headings.
std::vector<std::string> rank_cells(const learn::RankScores& scores);
std::vector<std::string> rank_headings(int64_t set_size);

}  // namespace tensorsmith::tools
