// Keeps an eye on the machine while another measurer measures on it: a program that is known to run, the canary, runs
// now and then.
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
  // So many candidates in a row that ended badly when they ran say that something may be wrong with the machine. They
  // become results only once the canary ran.
  int failures = 4;
  double interval_s = 15;  // between looks at the machine's speed
  double drift = 1.2;      // a canary that takes so many times its first time means another machine
  double pause_s = 1;      // until it is asked again
  // Of all pauses in a row; then the run goes on and the canary's time is the new one.
  double longest_pause_s = 30;
};

// What the canary says: its seconds, or why it did not run.
using Canary = std::function<Result<double>()>;

class WatchedMeasurer final : public Measurer {
 public:
  // sleep: called with seconds. cancel ends a pause. All but `inner` outlive this object.
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

  // As Measurer, but kIo where candidates failed in a row and the canary fails too: these failures become no results.
  Result<std::vector<record::MeasureResult>> measure(const ir::Workload& workload,
                                                     std::span<const Candidate> candidates,
                                                     double best_seconds_so_far, const Done& done) override;
  double waited_seconds() const override { return waited_ + inner_->waited_seconds(); }

 private:
  // Waits until the machine is as fast as it was.
  void await_usual_speed();
  void pause();

  std::unique_ptr<Measurer> inner_;
  Canary canary_;
  WatchOptions options_;
  const Clock& clock_;
  std::function<void(double)> sleep_;
  LogSink& log_;
  const std::atomic<bool>& cancel_;
  double usual_seconds_ = 0;  // of the canary; 0: not known
  double looked_ = 0;         // when, on the clock
  double waited_ = 0;
  int failed_ = 0;  // candidates in a row, in earlier calls too
};

// A canary of a trace that is measured by a measurer of its own: its fastest repeat.
Canary make_canary(std::shared_ptr<Measurer> measurer, ir::Workload workload, sched::Trace trace);

}  // namespace tensorsmith::measure
