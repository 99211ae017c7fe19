#include "lab/time_again.h"

#include <limits>
#include <map>

#include "base/statistics.h"
#include "sched/step.h"

namespace tensorsmith::lab {

namespace {

constexpr int kRounds = 7;

}  // namespace

Status time_again(const ir::Workload& workload, const MakeMeasurer& make_measurer,
                  const std::vector<Winner*>& winners) {
  std::map<std::string, size_t> places;
  std::vector<measure::MeasureRequest> programs;
  for (const Winner* winner : winners) {
    if (!places.emplace(winner->trace, programs.size()).second) continue;
    TS_ASSIGN_OR_RETURN(auto trace, sched::parse_trace(winner->trace));
    programs.push_back({std::move(trace), {}});
  }
  std::vector<std::vector<double>> seconds(programs.size());
  for (int round = 0; round < kRounds; ++round) {
    TS_ASSIGN_OR_RETURN(const auto measurer, make_measurer());
    // An infinite best time keeps the measurer from giving up slow programs.
    TS_ASSIGN_OR_RETURN(const auto results,
                        measurer->measure(workload, programs, std::numeric_limits<double>::infinity(),
                                          [](size_t, const record::MeasureResult&) { return true; }));
    if (results.size() < programs.size()) return {};  // cut off
    for (size_t i = 0; i < programs.size(); ++i) seconds[i].push_back(results[i].best_estimate());
  }
  for (Winner* winner : winners) winner->again = median(seconds[places.at(winner->trace)]);
  return {};
}

}  // namespace tensorsmith::lab
