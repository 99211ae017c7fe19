// Why a task's fastest program is fast and what limits it, from the profiles of its programs.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "learn/profile/profiled_programs.h"

namespace tensorsmith::engine {

// The least time that a program keeps a part of a core busy, by its counters and the device's rates. Device files have
// clocks that are sustained on all cores; one core is often faster.
struct Demand {
  std::string part;  // "multiply-adds", "reads from L2"
  double seconds = 0;

  // Of the time that the program takes, the share that the part is busy: at most 1, which no part can exceed.
  double busy_share(double program_seconds) const;
  // By its rates the part alone would take longer than the program takes: the rates or the counters are wrong.
  bool exceeds(double program_seconds) const { return seconds > program_seconds; }
};
// In a fixed order. What the device file leaves out is assumed (target::with_assumed_rates).
std::vector<Demand> demands_of(const std::map<std::string, double>& counters, const target::Device& device);

// The device with the least clock at which no program does more multiply-adds a cycle than it can, or its own.
target::Device with_fitting_clock(const learn::ProfiledPrograms& data);

struct CounterChange {
  std::string name;              // of the profile's columns
  double importance = 0;         // learn::importance
  double best = 0, typical = 0;  // the quantity, as the column's unit says
};

struct BufferTraffic {
  std::string buffer;
  double bytes = 0, l1_misses = 0, l2_misses = 0;
};

struct Explanation {
  std::string task;
  size_t programs = 0;
  double best_seconds = 0, typical_seconds = 0;  // the median program's
  std::vector<Demand> best, typical;
  size_t limit = 0;                     // of the best program, in `best`
  double clock_ghz = 0;                 // with_fitting_clock
  std::vector<CounterChange> counters;  // the most important first
  std::vector<BufferTraffic> buffers;   // of the best program, the most misses first
  std::vector<std::string> sentences;
};

// task: a key, or how its name begins. kNotFound where no task or several have it, kInvalidArgument with fewer than
// kFewestPrograms profiled programs.
inline constexpr size_t kFewestPrograms = 20;
Result<Explanation> explain(const learn::ProfiledPrograms& data, const std::string& task);

}  // namespace tensorsmith::engine
