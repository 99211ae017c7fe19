#include "tools/profiled_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "measure/profile/time_kernel.h"
#include "tools/console.h"
#include "tools/numbers.h"

namespace tensorsmith::tools {

Result<learn::ProfiledPrograms> read_profiles(const std::vector<std::string>& databases,
                                              const std::string& profiler,
                                              const std::vector<std::string>& tasks) {
  TS_ASSIGN_OR_RETURN(learn::ProfiledPrograms data,
                      learn::read_profiled_programs(databases, profiler, measure::kTiming));
  for (const std::string& line : data.left_out) warn(line);
  for (const std::string& name : tasks) {
    const bool known = std::any_of(data.tasks.begin(), data.tasks.end(),
                                   [&](const auto& task) { return task.name.starts_with(name); });
    if (!known)
      return Error{ErrorCode::kNotFound, "--task " + name,
                   "there is no profiled task whose name begins with this text"};
  }
  if (!tasks.empty()) {
    data.keep([&](const learn::StoredWorkload& task) {
      return std::any_of(tasks.begin(), tasks.end(),
                         [&](const std::string& name) { return task.name.starts_with(name); });
    });
  }
  return data;
}

std::vector<CLI::Option*> add_set_options(CLI::App& command, learn::RankSetOptions& options) {
  return {add_whole(command, "--draws", options.draws, 1, 1'000'000,
                    "Number of random sets of programs drawn for each task"),
          add_whole(command, "--set-size", options.set_size, 2, kMaxCount,
                    "Number of programs in a set; tasks with fewer programs are left out")};
}

nlohmann::json rank_json(const learn::RankScores& scores) {
  return {{"top_half", scores.top_half},
          {"misranked", scores.misranked},
          {"top1_gap", scores.top1_gap},
          {"rmse", scores.rmse}};
}

std::vector<std::string> rank_cells(const learn::RankScores& scores) {
  return {fmt::format("{:.1f}", 100 * scores.top_half), fmt::format("{:.1f}", 100 * scores.misranked),
          fmt::format("{:.1f}", 100 * scores.top1_gap), fmt::format("{:.3f}", scores.rmse)};
}

std::vector<std::string> rank_headings(int64_t set_size) {
  return {fmt::format("top {} of {} %", set_size / 2, set_size), "misranked %", "top-1 gap %",
          "RMSE of log(speed)"};
}

}  // namespace tensorsmith::tools
