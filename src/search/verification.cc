// What a run does before it believes anything: the untuned program of every task is compared with the
// reference, and so are the programs that win by records of earlier runs or of others.
#include <cmath>
#include <cstdio>

#include "search/plausible.h"
#include "search/tuning_run.h"

namespace tensorsmith::search {

namespace {

// Of a task. What else the database claims to be faster is left out.
constexpr int kMaxVerifications = 16;
// A second measurement that takes so many times as long contradicts the first.
constexpr double kContradicted = 2;

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

}  // namespace

bool TuningRun::is_believed(size_t task, const record::MeasureResult& result) {
  if (!result.ok() || is_plausible(result, least_seconds_[task])) return true;
  if (implausible_++ == 0)
    first_implausible_ = tasks_[task].name + ", " + seconds_text(result.best_estimate());
  return false;
}

Status TuningRun::verify_records(size_t task) {
  auto& state = *states_[task];
  for (int round = 0; round < kMaxVerifications && !cancel_.load(); ++round) {
    const auto doubtful = state.doubtful();
    if (doubtful.empty()) return {};
    std::vector<measure::Candidate> candidates;
    for (const auto& result : doubtful) candidates.push_back({result.trace, {}});
    TS_ASSIGN_OR_RETURN(const auto results,
                        measurer_.measure(tasks_[task].workload, candidates, 0,
                                          [](size_t, const record::MeasureResult&) { return true; }));
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].outcome == record::Outcome::kWorkerLost)
        return Error{ErrorCode::kIo, "measuring", results[i].reason};
      const double seconds = results[i].best_estimate();
      if (seconds > kContradicted * doubtful[i].seconds && contradicted_++ == 0) {
        first_contradicted_ =
            tasks_[task].name + ", " + seconds_text(doubtful[i].seconds) + " where this run finds " +
            (results[i].ok() ? seconds_text(seconds)
                             : std::string(to_string(results[i].outcome)) + " (" + results[i].reason + ")");
      }
      state.verify(doubtful[i].text, results[i]);
    }
  }
  if (!cancel_.load()) state.drop_doubtful();
  return {};
}

Status TuningRun::verify_all_records() {
  for (size_t task = 0; task < states_.size(); ++task) {
    if (auto status = verify_records(task); !status.ok()) return named(task, status.error());
  }
  warn_of_records();
  return {};
}

void TuningRun::warn_of_records() {
  if (implausible_ > 0 && !said_implausible_) {
    log_.log(LogLevel::kWarning,
             std::to_string(implausible_) +
                 " records are faster than the device can be and are not believed; the first: " +
                 first_implausible_);
    said_implausible_ = true;
  }
  if (contradicted_ > 0 && !said_contradicted_) {
    log_.log(LogLevel::kWarning,
             std::to_string(contradicted_) +
                 " records do not hold on this machine; the first: " + first_contradicted_);
    said_contradicted_ = true;
  }
}

Status TuningRun::check_untuned() {
  for (size_t task = 0; task < states_.size() && !cancel_.load(); ++task) {
    if (states_[task]->default_known()) continue;
    const auto status = measure_default(task, Counts::kNo);
    if (status.ok()) continue;
    // Too large to be measured at all: nothing is known against it.
    const ErrorCode code = status.error().code;
    if (code != ErrorCode::kResourceExhausted && code != ErrorCode::kUnsupported) return status;
    log_.log(LogLevel::kWarning,
             "the untuned program of " + status.error().message() + "; it is used unchecked");
  }
  for (size_t task = 0; task < states_.size(); ++task) {
    const auto& result = states_[task]->default_result();
    if (!result || result->outcome != record::Outcome::kWrongOutput) continue;
    return Error{ErrorCode::kMismatch, "task '" + tasks_[task].name + "'",
                 "the untuned program computes a wrong result (" + result->reason +
                     "), so no model is made; please report this with the model"};
  }
  return {};
}

Status TuningRun::check_all_have_programs() const {
  for (size_t task = 0; task < states_.size(); ++task) {
    const auto& state = *states_[task];
    if (!state.default_known() || !state.fastest(1).empty()) continue;
    return Error{ErrorCode::kMismatch, "task '" + tasks_[task].name + "'",
                 "none of its programs can be used, so no model is made: " + state.failure_counts()};
  }
  return {};
}

Error TuningRun::named(size_t task, const Error& error) const {
  return {error.code, "task '" + tasks_[task].name + "'", error.message()};
}

}  // namespace tensorsmith::search
