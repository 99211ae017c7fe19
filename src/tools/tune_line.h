// Formats the state of a tuning run as one line of text. Times are readings of one clock, in
// seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/tune/tune_model.h"

namespace tensorsmith::tools {

// As given on the command line; 0 = none.
struct RunLimits {
  int64_t trials = 0;
  double seconds = 0;  // from the start of the command until the model is written
};

class TuneLine {
 public:
  // start: time at which the command started; it reads the model before the first phase.
  TuneLine(double start, const RunLimits& limits) : start_(start), limits_(limits), phase_start_(start) {}

  void begins(engine::TunePhase phase, const engine::PhasePlan& plan, double now);
  void update(const search::TuneProgress& progress, double now);
  void compared(const engine::Speedup& speedup) { speedup_ = speedup; }

  // "measuring  12 s / 1:00  ETA 48 s  estimate 9.000 ms -> 6.000 ms (1.50x) -> 5.000 ms expected
  // 37 trials (3.1/s), 2 failed  | conv_3: 1.200 ms". Unknown parts are left out, and parts at the
  // right end that do not fit. Once the model has run untuned and tuned, the speed-up replaces the
  // estimate: "end to end 9.100 ms -> 5.200 ms (1.75x)".
  std::string text(double now, size_t columns) const;
  // For output that is not redrawn: "  0.9 s  compiling and timing the untuned model ...".
  std::string phase_text(double now) const;
  // For example "measuring schedules".
  std::string phase() const;
  double elapsed_seconds(double now) const { return now - start_; }
  // Seconds until the model is written; nullopt: not known, or overdue.
  std::optional<double> seconds_left(double now) const;

 private:
  // Seconds until the trial limit at the present rate.
  std::optional<double> trial_seconds_left(double now) const;

  double start_;
  RunLimits limits_;
  std::optional<engine::TunePhase> phase_;  // nullopt: the model is being read
  double phase_start_;
  engine::PhasePlan plan_;

  std::optional<search::TuneProgress> progress_;  // the last one
  std::optional<engine::Speedup> speedup_;        // of the model that is currently compared or written
  double updated_ = 0;
  // Time and trials of the first progress event.
  double first_update_ = 0;
  int64_t first_trials_ = 0;
};

}  // namespace tensorsmith::tools
