#include "engine/time_again.h"

#include <limits>
#include <map>

#include "base/statistics.h"
#include "sched/step.h"

namespace tensorsmith::engine {

namespace {

constexpr int kRounds = 5;

}  // namespace

Status time_again(const ir::Workload& workload, measure::Measurer& measurer,
                  const std::vector<Winner*>& winners) {
  std::map<std::string, size_t> places;
  std::vector<measure::Candidate> programs;
  for (const Winner* winner : winners) {
    if (!places.emplace(winner->trace, programs.size()).second) continue;
    TS_ASSIGN_OR_RETURN(auto trace, sched::parse_trace(winner->trace));
    programs.push_back({std::move(trace), {}});
  }
  std::vector<measure::Candidate> turns;
  for (int round = 0; round < kRounds; ++round) turns.insert(turns.end(), programs.begin(), programs.end());
  // No program is given up for being slow.
  TS_ASSIGN_OR_RETURN(const auto results,
                      measurer.measure(workload, turns, std::numeric_limits<double>::infinity(),
                                       [](size_t, const record::MeasureResult&) { return true; }));
  if (results.size() < turns.size()) return {};  // cut off
  for (Winner* winner : winners) {
    std::vector<double> seconds;
    for (size_t i = places.at(winner->trace); i < results.size(); i += programs.size())
      seconds.push_back(results[i].best_estimate());
    winner->again = median(seconds);
  }
  return {};
}

}  // namespace tensorsmith::engine
