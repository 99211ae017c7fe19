#include "search/confirmation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/statistics.h"
#include "record/disturbance.h"

namespace tensorsmith::search {

namespace {

// The default is compared again if a winner's measured gain over it is below this factor; followers
// are if they are at most kDoubtfulTie slower.
constexpr double kDoubtfulGain = 1.10;
constexpr double kDoubtfulTie = 1.03;
constexpr int kRounds = 3;
// Most programs that lost by doubtful readings and are compared again.
constexpr size_t kMostLosers = 3;
// The default wins if the others are not clearly faster.
constexpr double kDefaultFactor = 0.995;

// Returns the winner, the programs close to it, the default if it is not much slower, and programs that
// lost by doubtful readings. A doubtful winner is compared with the next program, however slow.
std::vector<RunProgram> contenders(const TaskState& state) {
  const MeasuredPrograms& programs = state.programs();
  auto top = programs.best(3);
  const size_t least = !top.empty() && record::is_doubtful(top.front().disturbance) ? 2 : 1;
  while (top.size() > least && top.back().cost > kDoubtfulTie * top.front().cost) top.pop_back();
  const bool has_default = std::any_of(top.begin(), top.end(), [](const auto& r) { return r.is_default; });
  const RunProgram* untuned = programs.untuned();
  if (!has_default && untuned != nullptr && untuned->cost < kDoubtfulGain * top.front().cost)
    top.push_back(*untuned);
  if (top.empty()) return top;
  for (RunProgram& loser : programs.doubtful_losers(top.front().cost, kMostLosers)) {
    if (std::none_of(top.begin(), top.end(), [&](const auto& r) { return r.hash == loser.hash; }))
      top.push_back(std::move(loser));
  }
  return top;
}

}  // namespace

Result<std::optional<sched::Trace>> confirm_winner(const TaskState& state, measure::Measurer& measurer) {
  const auto top = contenders(state);
  std::optional<sched::Trace> winner;
  if (top.size() < 2) return winner;
  std::vector<measure::MeasureRequest> candidates;
  for (int round = 0; round < kRounds; ++round)
    for (const auto& r : top) candidates.push_back({r.trace, {}});
  TS_ASSIGN_OR_RETURN(const auto results,
                      measurer.measure(state.task().workload(), candidates, state.programs().best_seconds(),
                                       [](size_t, const record::MeasureResult&) { return true; }));
  double best_seconds = std::numeric_limits<double>::infinity(), best_cost = best_seconds;
  for (size_t k = 0; k < top.size(); ++k) {
    // Takes the medians of all rounds and the first measurement, unless that is doubtful.
    std::vector<double> times, energies;
    if (!record::is_doubtful(top[k].disturbance)) {
      times.push_back(top[k].seconds);
      energies.push_back(top[k].joules);
    }
    for (int round = 0; round < kRounds; ++round) {
      const record::MeasureResult& result = results[round * top.size() + k];
      times.push_back(result.best_estimate());
      if (result.joules) energies.push_back(*result.joules);
    }
    const double advantage = top[k].is_default ? kDefaultFactor : 1;
    const double seconds = advantage * median(std::move(times));
    // An objective without latency would see a cost in a program that fails.
    if (!std::isfinite(seconds)) continue;
    const bool metered = !std::isnan(top[k].joules) && !energies.empty();
    const double joules =
        metered ? advantage * median(std::move(energies)) : std::numeric_limits<double>::quiet_NaN();
    const double cost = state.programs().objective().cost({seconds, top[k].bytes, joules});
    if (cost < best_cost || (cost == best_cost && seconds < best_seconds)) {
      best_cost = cost;
      best_seconds = seconds;
      winner = top[k].trace;
    }
  }
  return winner;
}

}  // namespace tensorsmith::search
