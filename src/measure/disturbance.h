// Measures how much processor time others take: record/disturbance.h says what that means.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "base/processors.h"

namespace tensorsmith::measure {

// Least seconds that a disturbance is measured over, and the seconds below which it is not known.
inline constexpr double kDisturbanceWindow = 0.5, kLeastDisturbanceWindow = 0.1;

struct ProcessorLoad {
  double now = 0;      // seconds of a clock that never stops
  double busy = 0;     // seconds that the processors were busy or taken by the hypervisor so far, summed
  int processors = 1;  // number of processors
};
// Reads the load of the processors; nullopt: the system does not tell it.
using ReadLoad = std::function<std::optional<ProcessorLoad>()>;

// Returns the seconds that these processors were busy or taken by the hypervisor, from the text of
// /proc/stat: user, nice, system, irq, softirq and steal (proc(5)). nullopt if a processor is missing or
// has only zeros, as in some containers. processors: ascending.
std::optional<double> busy_seconds(std::string_view stat, std::span<const int> processors,
                                   double ticks_per_second);

// Returns a function that reads the load of the processors that the calling thread may run on, from
// /proc/stat. If a cgroup limits this process to less time than these processors have, the load is not
// told: most of it is then that of other containers, which leave this process its share.
ReadLoad system_load(const ProcessorPaths& paths = {});

// Processor seconds that this process and its ended children have used so far.
double own_seconds();

class DisturbanceMeter {
 public:
  // own: processor seconds that the measuring process and its workers have used so far.
  DisturbanceMeter(ReadLoad read, std::function<double()> own)
      : read_(std::move(read)), own_(std::move(own)) {}

  // Forgets what was sampled, because processes of this program that `own` does not count may have worked
  // since, such as the workers of other measurers.
  void restart();
  // Begins a measurement. Returns the disturbance just before it; if there are too few samples, the last
  // one that was known.
  std::optional<double> begin();
  // Ends it. Returns its disturbance, over kDisturbanceWindow seconds if it was shorter and there are
  // samples from before it.
  std::optional<double> end();

 private:
  struct Sample {
    double now = 0, busy = 0, own = 0;
  };
  // Takes a sample, and returns the disturbance since the last sample that is as old as `begin` and the
  // window, or since the oldest one.
  std::optional<double> sample(double begin);

  ReadLoad read_;
  std::function<double()> own_;
  std::deque<Sample> samples_;
  double begin_ = 0;
  std::optional<double> last_;
};

}  // namespace tensorsmith::measure
