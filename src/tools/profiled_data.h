// What commands on profiled programs share: reading them, and showing how well they are ranked.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "learn/profile/rank_sets.h"

namespace tensorsmith::tools {

// Says which records were left out. tasks: only those whose name begins with one of the words; none: all.
Result<learn::ProfiledPrograms> read_profiles(const std::vector<std::string>& databases,
                                              const std::string& profiler,
                                              const std::vector<std::string>& tasks);

// --draws and --set-size.
std::vector<CLI::Option*> add_set_options(CLI::App& command, learn::RankSetOptions& options);

nlohmann::json rank_json(const learn::RankScores& scores);
// Of a table, and their headings.
std::vector<std::string> rank_cells(const learn::RankScores& scores);
std::vector<std::string> rank_headings(int64_t set_size);

}  // namespace tensorsmith::tools
