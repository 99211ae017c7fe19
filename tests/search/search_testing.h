// Test doubles for the search.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "ir/structural.h"
#include "measure/measurer.h"
#include "search/tuner.h"
#include "target/target.h"

namespace tensorsmith::search::test {

inline target::Device device() {
  target::Device d;
  d.name = "test";
  d.arch = "x86-64";
  d.cpu().vector_bytes = 32;
  d.cpu().vector_registers = 16;
  d.cpu().fma_per_cycle = 2;
  d.cpu().cores = 1;
  return d;
}

// A clock that moves only when told.
class FakeClock final : public Clock {
 public:
  double monotonic_seconds() const override { return now; }
  int64_t unix_milliseconds() const override { return static_cast<int64_t>(now * 1000); }
  double now = 1000;
};

struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

// Answers by a function of the workload's key and the trace; counts every measurement.
class FakeMeasurer final : public measure::Measurer {
 public:
  using Answer = std::function<record::MeasureResult(const std::string& task, const sched::Trace& trace)>;
  FakeMeasurer(Answer answer, FakeClock& clock, double seconds_per_trial = 0.1)
      : answer_(std::move(answer)), clock_(clock), seconds_per_trial_(seconds_per_trial) {}

  Result<std::vector<record::MeasureResult>> measure(const ir::Workload& workload,
                                                     std::span<const measure::MeasureRequest> candidates,
                                                     double /*best_seconds_so_far*/,
                                                     const Done& done) override {
    const std::string key = ir::structural_key(workload);
    std::vector<record::MeasureResult> results;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (kill_after >= 0 && total >= kill_after) throw Killed();
      clock_.now += seconds_per_trial_;
      ++total;
      log.emplace_back(key, candidates[i].what);
      if (candidates[i].what.reason != record::Reason::kUnstated)
        ++counts[key + "\n" + sched::print(candidates[i].trace)];
      results.push_back(answer_(key, candidates[i].trace));
      if (!done(i, results.back())) break;
    }
    return results;
  }

  std::map<std::string, int> counts;  // by task and trace, without repeated measurements of winners
  std::vector<std::pair<std::string, record::CandidateOrigin>> log;  // task key and candidate, in order
  int64_t total = 0;
  int64_t kill_after = -1;

 private:
  Answer answer_;
  FakeClock& clock_;
  double seconds_per_trial_;
};

inline record::MeasureResult took(double seconds) {
  record::MeasureResult result;
  result.seconds = {seconds, seconds, seconds};
  result.runs_per_repeat = 1;
  return result;
}

inline record::MeasureResult failed(record::Outcome outcome, std::string reason) {
  record::MeasureResult result;
  result.outcome = outcome;
  result.reason = std::move(reason);
  return result;
}

// A model that predicts the same for every program; counts its queries.
class FlatModel final : public learn::CostModel {
 public:
  Result<std::vector<learn::Prediction>> predict(
      std::span<const learn::ProgramQuery> queries) const override {
    return std::vector<learn::Prediction>(queries.size(), {1e-3});
  }
  learn::ModelInputs inputs() const override { return {.rows = true}; }
  bool learns() const override { return true; }
  Status update(std::span<const learn::MeasuredProgram> programs) override {
    ++updates;
    last = programs.size();
    return {};
  }
  const learn::ModelCard& card() const override { return card_; }
  Status save(const std::string& path) const override {
    return Error{ErrorCode::kUnsupported, path, "a test's model"};
  }
  int updates = 0;
  size_t last = 0;

 private:
  learn::ModelCard card_;
};

inline TuneTask task(const std::string& name, const ir::Workload& workload, double weight = 1) {
  return {.task = PreparedTask::create({ir::structural_key(workload), name}, workload,
                                       std::make_shared<const target::Device>(device()), {})
                      .value(),
          .weight = weight};
}

// Returns seconds that depend only on the trace.
inline double pseudo_seconds(const sched::Trace& trace) {
  return 1e-3 * (1 + static_cast<double>(Hasher().add(sched::print(trace)).digest64() % 1000) / 100);
}

struct Bench {
  FakeClock clock;
  FlatModel model;
  NullLogSink log;
  std::atomic<bool> cancel{false};
  TuneOptions options;
  std::unique_ptr<record::Database> database = std::move(*record::Database::open(":memory:"));
  std::vector<TuneProgress> progress;

  Bench() {
    options.batch = 8;
    options.seed = 1;
  }
  Result<TuneReport> run(const std::vector<TuneTask>& tasks, measure::Measurer& measurer) {
    return tune(tasks, device(), options, services(measurer));
  }
  TuneServices services(measure::Measurer& measurer) {
    return {*database,
            measurer,
            &model,
            clock,
            log,
            cancel,
            [&](const TuneProgress& p) { progress.push_back(p); }};
  }
};

inline FakeMeasurer::Answer pseudo() {
  return [](const std::string&, const sched::Trace& trace) { return took(pseudo_seconds(trace)); };
}

}  // namespace tensorsmith::search::test
