// The processors that this process may use, and how much of them.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace tensorsmith {

// A processor is what the system schedules a thread on, a hardware thread; a core has one or more of them.
struct Processors {
  std::vector<int> allowed;  // numbers of those that the calling thread may run on, ascending; never empty
  std::vector<int> cores;  // of each of them, the lowest number of its thread siblings: the same for one core
  int physical_cores = 1;  // different ones in `cores`
  double quota = 0;        // processors' worth of time that cgroups give; infinity if they do not limit it
  // The most threads that can be busy at once: one a processor, and no more than the quota. It is rounded
  // down: with a quota of 1.5 two busy threads are stopped for a quarter of each period, which is long
  // enough to spoil a loop that both run and any measurement. At least 1.
  int at_once = 1;
  // Threads to use by default: at_once, but at most one a core. Kernels are tiled for all of a core's caches
  // and registers, and one thread keeps its units busy; a second one would share them.
  int usable = 1;
};

// Where the system keeps what it says of them; tests have their own.
struct ProcessorPaths {
  std::string sys = "/sys";
  std::string proc = "/proc";
};

// Of the calling thread. What cannot be read does not limit: reads a file for each processor, those of the
// process' cgroups and of the cgroups around them (cpu.max of version 2, cpu.cfs_quota_us of version 1).
Processors processors(const ProcessorPaths& paths = {});
// The same of a thread that may run on these, at least one.
Processors processors_of(std::vector<int> allowed, const ProcessorPaths& paths = {});

// Numbers of the processors that the calling thread may run on, ascending, at least one. Opens no file.
std::vector<int> allowed_processors();

// One line for people where the default is fewer threads than the processors that the process sees; else
// empty.
std::string shortage(const Processors& processors);

// All allowed ones, in the order in which a team takes them: one of each core before a second of any.
std::vector<int> spread_over_cores(const Processors& processors);

// Where the others of a team of `threads` go while one of them is busy on `processor`: off its core if there
// is another core for each of them, else off that processor only; empty if there is no other. `others`
// needs no memory if it has room for all allowed ones.
void processors_beside(const Processors& processors, int processor, int threads, std::vector<int>& others);

// Asks the system, once, to let this process use the tiles of its matrix units (AMX): Linux saves their 8 KiB only for
// processes that asked. Threads and forked processes have it too, started programs do not. False: there are none, or
// an alternative signal stack is too small for them.
bool may_use_tiles();

// A set of processors for the system's calls, of any number: cpu_set_t alone holds 1024.
class ProcessorMask {
 public:
  // Empty, with room for processors 0 to highest.
  explicit ProcessorMask(int highest);
  // Holds these and no others; numbers beyond the room are left out. Allocates nothing.
  void assign(const std::vector<int>& numbers);
  std::vector<int> numbers() const;

  size_t bytes() const { return sets_.size() * sizeof(cpu_set_t); }
  cpu_set_t* data() { return sets_.data(); }
  const cpu_set_t* data() const { return sets_.data(); }

 private:
  std::vector<cpu_set_t> sets_;
};

}  // namespace tensorsmith
