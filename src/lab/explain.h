// Explains from the profiles of a task's programs why the fastest one is fast and what limits it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "learn/profile/profiled_programs.h"

namespace tensorsmith::lab {

// Least time that a program keeps a part of a core busy, from its counters and the device's rates.
// The clocks of device files are those sustained on all cores; one core is often faster.
struct Demand {
  std::string part;  // for example "multiply-adds", "reads from L2"
  double seconds = 0;

  // Share of the program's time for which the part is busy, at most 1.
  double busy_share(double program_seconds) const;
};
// Returns the time for which no part is known to be busy. The parts work at the same time, so it and the time
// of the busiest part make up the whole.
double unexplained_seconds(const std::vector<Demand>& demands, double program_seconds);
// Returns the demands in a fixed order. Rates that the device file leaves out are assumed
// (target::with_assumed_figures).
std::vector<Demand> demands_of(const std::map<std::string, double>& counters, const target::Device& device);

// Returns the device with the lowest clock, not below its own, at which no program exceeds the
// possible multiply-adds per cycle.
target::Device with_fitting_clock(const learn::ProfiledPrograms& data);

struct CounterChange {
  std::string name;              // one of the profile's columns
  double importance = 0;         // learn::importance
  double best = 0, typical = 0;  // in the column's unit
};

struct BufferTraffic {
  std::string buffer;
  double bytes = 0, l1_misses = 0, l2_misses = 0;
};

struct Explanation {
  std::string task;
  size_t programs = 0;
  double best_seconds = 0, typical_seconds = 0;  // typical: of the median program
  // No part takes longer than the program: where the counters and rates say so, the part's demands are
  // divided by a factor, which a sentence names.
  std::vector<Demand> best, typical;
  size_t limit = 0;                     // index into `best`: the part that limits the best program
  double clock_ghz = 0;                 // of the device from with_fitting_clock()
  std::vector<CounterChange> counters;  // the most important first
  std::vector<BufferTraffic> buffers;   // of the best program, most misses first
  std::vector<std::string> sentences;
};

// `task` is a key or the beginning of a name. kNotFound if it matches no task or several,
// kInvalidArgument for fewer than kFewestPrograms profiled programs.
inline constexpr size_t kFewestPrograms = 20;
Result<Explanation> explain(const learn::ProfiledPrograms& data, const std::string& task);

}  // namespace tensorsmith::lab
