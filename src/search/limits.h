// The limits of a tuning run in time and trials.
#pragma once

#include <cstdint>

#include "search/tuner.h"

namespace tensorsmith::search {

class Limits {
 public:
  // All arguments must outlive the object.
  Limits(const TuneOptions& options, const Clock& clock, const std::atomic<bool>& cancel,
         const measure::Measurer& measurer)
      : options_(options),
        clock_(clock),
        cancel_(cancel),
        measurer_(measurer),
        start_(clock.monotonic_seconds()),
        waited_before_(measurer.waited_seconds()) {}

  void count_trial() { ++trials_; }
  int64_t trials() const { return trials_; }
  // Excludes the time that the measurer waited for the machine.
  double elapsed() const {
    return clock_.monotonic_seconds() - start_ - (measurer_.waited_seconds() - waited_before_);
  }
  bool cancelled() const { return cancel_.load(); }
  // Whether no further measurement is allowed. The end of a limited time is reserved for confirming
  // winners.
  bool finished() const;
  // Whether all of the time has passed.
  bool out_of_time() const { return options_.seconds > 0 && elapsed() >= options_.seconds; }
  // The used share of the limits, in [0, 1].
  double progress() const;
  // Remaining seconds for searching; requires a limited time.
  double seconds_left() const { return search_seconds() - elapsed(); }

 private:
  double search_seconds() const;

  const TuneOptions& options_;
  const Clock& clock_;
  const std::atomic<bool>& cancel_;
  const measure::Measurer& measurer_;
  double start_, waited_before_;
  int64_t trials_ = 0;
};

}  // namespace tensorsmith::search
