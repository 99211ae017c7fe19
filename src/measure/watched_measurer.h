// Monitors the machine while another measurer measures on it: runs a program that is known to work,
// the canary, from time to time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/sinks.h"
#include "measure/measurer.h"

namespace tensorsmith::measure {

struct WatchOptions {
  // Number of consecutive runtime failures of candidates that may indicate a fault of the machine.
  // They become results only after the canary has run successfully.
  int failures = 4;
  double interval_s = 15;  // between checks of the machine's speed
  // Ratio of the canary's time to its usual time above which the machine counts as disturbed.
  double drift = 1.2;
  double pause_s = 1;  // until the canary is run again
  // Limit on consecutive pauses; then the run continues, and the canary's present time becomes the
  // usual one.
  double longest_pause_s = 30;
};

// Runs the canary; returns its seconds, or why it did not run.
using Canary = std::function<Result<double>()>;

class WatchedMeasurer final : public Measurer {
 public:
  // `sleep` is called with seconds. `cancel` ends a pause. All arguments but `inner` must outlive
  // this object.
  WatchedMeasurer(std::unique_ptr<Measurer> inner, Canary canary, const WatchOptions& options,
                  const Clock& clock, std::function<void(double)> sleep, LogSink& log,
                  const std::atomic<bool>& cancel)
      : inner_(std::move(inner)),
        canary_(std::move(canary)),
        options_(options),
        clock_(clock),
        sleep_(std::move(sleep)),
        log_(log),
        cancel_(cancel) {}

  // As Measurer, but kIo if candidates failed in a row and the canary fails too; these failures
  // make no results.
  Result<std::vector<record::MeasureResult>> measure(const ir::Workload& workload,
                                                     std::span<const MeasureRequest> candidates,
                                                     double best_seconds_so_far, const Done& done) override;
  double waited_seconds() const override { return waited_ + inner_->waited_seconds(); }

 private:
  // Waits until the machine is as fast as usual.
  void await_usual_speed();
  void pause();

  std::unique_ptr<Measurer> inner_;
  Canary canary_;
  WatchOptions options_;
  const Clock& clock_;
  std::function<void(double)> sleep_;
  LogSink& log_;
  const std::atomic<bool>& cancel_;
  double usual_seconds_ = 0;  // time of the canary; 0: not known
  double looked_ = 0;         // clock time of the last check
  double waited_ = 0;
  int failed_ = 0;  // consecutive failed candidates, including earlier calls
};

// Makes a canary that runs a trace on its own measurer and returns its fastest repeat.
Canary make_canary(std::shared_ptr<Measurer> measurer, ir::Workload workload, sched::Trace trace);

}  // namespace tensorsmith::measure
