// Simulates a search without a machine: times come from records, and a simulated clock advances by
// the time that the measurements would have taken.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "measure/measurer.h"
#include "record/database.h"
#include "search/recorded_space.h"

namespace tensorsmith::search {

// A clock that advances only when told to.
class SimulatedClock final : public Clock {
 public:
  double monotonic_seconds() const override { return seconds_; }
  int64_t unix_milliseconds() const override { return static_cast<int64_t>(seconds_ * 1e3); }
  void advance(double seconds) { seconds_ += seconds; }

 private:
  double seconds_ = 0;
};

// Answers with recorded results. Each answer advances the clock by the same time.
class ReplayMeasurer final : public measure::Measurer {
 public:
  // Time per trial: about as long as building and timing a kernel takes on a CPU. Chosen, not
  // fitted.
  static constexpr double kSecondsPerTrial = 0.04;

  explicit ReplayMeasurer(SimulatedClock& clock) : clock_(clock) {}
  void add_task(const std::string& key, std::shared_ptr<const RecordedSpace> space) {
    spaces_[key] = std::move(space);
  }
  // kNotFound for a task that was not added or a program that was not recorded.
  Result<std::vector<record::MeasureResult>> measure(const ir::Workload& workload,
                                                     std::span<const measure::MeasureRequest> candidates,
                                                     double best_seconds_so_far, const Done& done) override;
  int64_t measured() const { return measured_; }

 private:
  SimulatedClock& clock_;
  std::map<std::string, std::shared_ptr<const RecordedSpace>> spaces_;  // by structural key
  int64_t measured_ = 0;
};

}  // namespace tensorsmith::search
