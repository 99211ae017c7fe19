#include "measure/watched_measurer.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tensorsmith::measure {

namespace {

// Whether an outcome can be caused by the machine as well as by the candidate.
bool may_be_the_machine(record::Outcome outcome) {
  switch (outcome) {
    case record::Outcome::kCrash:
    case record::Outcome::kRunTimeout:
    case record::Outcome::kMemoryLimit:
    case record::Outcome::kWrongOutput:
    case record::Outcome::kBuildTimeout:
      return true;
    default:
      return false;
  }
}

std::string times(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", ratio);
  return text;
}

}  // namespace

void WatchedMeasurer::pause() {
  const double before = clock_.monotonic_seconds();
  sleep_(options_.pause_s);
  waited_ += clock_.monotonic_seconds() - before;
}

void WatchedMeasurer::await_usual_speed() {
  double paused = 0;
  for (bool said = false;;) {
    const double before = clock_.monotonic_seconds();
    const auto seconds = canary_();
    looked_ = clock_.monotonic_seconds();
    if (said) waited_ += looked_ - before;
    // A failing canary is handled where candidates fail.
    if (!seconds.ok()) return;
    if (usual_seconds_ <= 0) usual_seconds_ = *seconds;
    const double ratio = *seconds / usual_seconds_;
    if (ratio <= options_.drift) {
      usual_seconds_ = std::min(usual_seconds_, *seconds);
      if (said) log_.log(LogLevel::kWarning, "the machine has its former speed again; measuring continues");
      return;
    }
    if (paused >= options_.longest_pause_s) {
      log_.log(LogLevel::kWarning, "the machine is still " + times(ratio) +
                                       " times slower than before; measuring continues, but the new times "
                                       "are not comparable with the earlier ones");
      usual_seconds_ = *seconds;
      return;
    }
    if (!said)
      log_.log(LogLevel::kWarning, "the machine is " + times(ratio) +
                                       " times slower than at the start (because of other programs or "
                                       "heat?); measuring pauses until it recovers");
    said = true;
    if (cancel_) return;
    pause();
    paused += options_.pause_s;
  }
}

Result<std::vector<record::MeasureResult>> WatchedMeasurer::measure(
    const ir::Workload& workload, std::span<const MeasureRequest> candidates, double best_seconds_so_far,
    const Done& done) {
  if (usual_seconds_ <= 0 || clock_.monotonic_seconds() - looked_ >= options_.interval_s) await_usual_speed();
  // Until it is known whether the candidates or the machine caused them.
  std::vector<std::pair<size_t, record::MeasureResult>> held;
  std::optional<Error> broken;
  bool go_on = true;
  size_t given = 0;
  const auto give = [&](size_t i, const record::MeasureResult& result) {
    ++given;
    if (go_on && done) go_on = done(i, result);
  };
  // Returns true if the candidates caused the held failures.
  const auto judge = [&] {
    const auto canary = canary_();
    if (!canary.ok()) {
      broken =
          Error{ErrorCode::kIo, "measuring",
                "the last " + std::to_string(failed_) + " candidates failed (" + held.back().second.reason +
                    "), and so did a test program that worked before (" + canary.error().message() +
                    "), so something is wrong with this machine; the earlier measurements are kept"};
      return false;
    }
    failed_ = 0;
    for (const auto& [i, result] : held) give(i, result);
    held.clear();
    return true;
  };
  const auto watch = [&](size_t i, const record::MeasureResult& result) {
    if (may_be_the_machine(result.outcome) && !cancel_) {
      held.emplace_back(i, result);
      if (++failed_ >= options_.failures && !judge()) return false;
      return go_on;
    }
    // A successful program shows that the machine works.
    if (result.ok()) failed_ = 0;
    for (const auto& [k, earlier] : held) give(k, earlier);
    held.clear();
    give(i, result);
    return go_on;
  };
  auto results = inner_->measure(workload, candidates, best_seconds_so_far, watch);
  if (broken) return *broken;
  if (!results.ok()) return results;
  for (const auto& [i, result] : held) give(i, result);
  results->resize(std::min(results->size(), given));
  return results;
}

Canary make_canary(std::shared_ptr<Measurer> measurer, ir::Workload workload, sched::Trace trace) {
  return [measurer = std::move(measurer), workload = std::move(workload),
          candidate = MeasureRequest{std::move(trace), {}}]() -> Result<double> {
    TS_ASSIGN_OR_RETURN(const auto results, measurer->measure(workload, std::span(&candidate, 1), 0, {}));
    const record::MeasureResult& result = results.front();
    if (!result.ok() || result.seconds.empty())
      return Error{ErrorCode::kIo, "", std::string(record::to_string(result.outcome)) + ": " + result.reason};
    return *std::min_element(result.seconds.begin(), result.seconds.end());
  };
}

}  // namespace tensorsmith::measure
