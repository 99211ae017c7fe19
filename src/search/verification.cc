// Checks that a run makes before it relies on results: the untuned program of every task is
// compared with the reference, and so are programs that win by records of earlier runs or other
// processes.

#include "search/tuning_run.h"

namespace tensorsmith::search {

namespace {

// Most rounds of verification for a task; remaining unverified programs of the database that claim
// to be faster are dropped.
constexpr int kMaxVerifications = 16;

}  // namespace

Status TuningRun::verify_records(size_t task) {
  MeasuredPrograms& programs = states_[task]->programs();
  for (int round = 0; round < kMaxVerifications && !limits_.cancelled(); ++round) {
    const auto doubtful = programs.doubtful();
    if (doubtful.empty()) return {};
    std::vector<measure::MeasureRequest> candidates;
    for (const auto& result : doubtful) candidates.push_back({result.trace, {}});
    TS_ASSIGN_OR_RETURN(const auto results, services_.measurer.measure(
                                                task_of(task).workload(), candidates, 0,
                                                [](size_t, const record::MeasureResult&) { return true; }));
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].outcome == record::Outcome::kWorkerLost)
        return Error{ErrorCode::kIo, "measuring", results[i].reason};
      doubts_.ran_again(task, doubtful[i].seconds, results[i]);
      programs.verify(doubtful[i].hash, results[i]);
    }
  }
  if (!limits_.cancelled()) programs.drop_doubtful();
  return {};
}

Status TuningRun::verify_all_records() {
  for (size_t task = 0; task < states_.size(); ++task) {
    if (auto status = verify_records(task); !status.ok()) return named(task, status.error());
  }
  doubts_.warn(services_.log);
  return {};
}

Status TuningRun::check_untuned() {
  for (size_t task = 0; task < states_.size() && !limits_.cancelled(); ++task) {
    if (programs_of(task).default_known()) continue;
    const auto status = measure_default(task, Counts::kNo);
    if (status.ok()) continue;
    // If the program is too large to be measured at all, nothing speaks against it.
    const ErrorCode code = status.error().code;
    if (code != ErrorCode::kResourceExhausted && code != ErrorCode::kUnsupported) return status;
    services_.log.log(LogLevel::kWarning, "cannot check the untuned program of " + status.error().message() +
                                              "; it is used without a check");
  }
  for (size_t task = 0; task < states_.size(); ++task) {
    const auto& result = programs_of(task).default_result();
    if (!result || result->outcome != record::Outcome::kWrongOutput) continue;
    return Error{ErrorCode::kMismatch, "task '" + task_of(task).name() + "'",
                 "the untuned program computed a wrong result (" + result->reason +
                     "), so no model was written; please report this error and attach the model"};
  }
  return {};
}

Status TuningRun::check_all_have_programs() const {
  for (size_t task = 0; task < states_.size(); ++task) {
    const MeasuredPrograms& programs = programs_of(task);
    if (!programs.default_known() || !programs.best(1).empty()) continue;
    return Error{ErrorCode::kMismatch, "task '" + task_of(task).name() + "'",
                 "none of its programs can be used, so no model was written: " + programs.failure_counts()};
  }
  return {};
}

Error TuningRun::named(size_t task, const Error& error) const {
  return {error.code, "task '" + task_of(task).name() + "'", error.message()};
}

}  // namespace tensorsmith::search
