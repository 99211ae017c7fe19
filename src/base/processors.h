// The processors that this process may use, and the share of their time.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace tensorsmith {

// A processor is a unit that the system schedules threads on, a hardware thread; a core has one or
// more processors.
struct Processors {
  std::vector<int> allowed;  // numbers of those that the calling thread may run on, ascending; never empty
  std::vector<int> cores;  // for each of them, the lowest number of its thread siblings, which identifies its
                           // core
  int physical_cores = 1;  // number of distinct entries of `cores`
  double quota = 0;        // CPU time limit of cgroups in processors; infinity if there is none
  // The most threads that can run at once: one per processor, and no more than the quota. The quota
  // is rounded down: with 1.5, two busy threads would be stopped for a quarter of each period,
  // which spoils loops that both run, and any measurement. At least 1.
  int at_once = 1;
  // Default number of threads: at_once, but at most one per core. Kernels are tiled for all of a
  // core's caches and registers, and one thread keeps its units busy; a second thread would share
  // them.
  int usable = 1;
};

// Mount points of the file systems with this information; tests use their own.
struct ProcessorPaths {
  std::string sys = "/sys";
  std::string proc = "/proc";
};

// Returns the processors of the calling thread. Unreadable limits are ignored. Reads a file for
// each processor, and those of the process' cgroup and the enclosing ones (cpu.max of version 2,
// cpu.cfs_quota_us of version 1).
Processors processors(const ProcessorPaths& paths = {});
// Returns the processors of a thread that may run on the `allowed` ones (at least one).
Processors processors_of(std::vector<int> allowed, const ProcessorPaths& paths = {});

// Returns the numbers of the processors that the calling thread may run on, ascending, at least
// one. Opens no file.
std::vector<int> allowed_processors();

// Returns a line for people if the default is fewer threads than the processors that the process
// sees; otherwise an empty string.
std::string shortage(const Processors& processors);

// Returns all allowed processors, in the order in which a team of threads uses them: one of each
// core before a second one of any core.
std::vector<int> spread_over_cores(const Processors& processors);

// Finds the processors for the other threads of a team of `threads` while one of them is busy on
// `processor`: all that are not on its core if each thread can have a core of its own, otherwise
// all except `processor`; empty if there are none. Allocates nothing if `others` has capacity for
// all allowed ones.
void processors_beside(const Processors& processors, int processor, int threads, std::vector<int>& others);

// Requests permission from the system, once, to use the tiles of the matrix units (AMX): Linux
// saves their 8 KiB only for processes that have requested it. Threads and forked processes inherit
// the permission, executed programs do not. Returns false if there are no matrix units or an
// alternative signal stack is too small for their state.
bool may_use_tiles();

// A set of processors for system calls, without the limit of cpu_set_t, which holds 1024.
class ProcessorMask {
 public:
  // An empty set with room for processors 0 to highest.
  explicit ProcessorMask(int highest);
  // Sets the members; numbers beyond the room are ignored. Allocates nothing.
  void assign(const std::vector<int>& numbers);
  std::vector<int> numbers() const;

  size_t bytes() const { return sets_.size() * sizeof(cpu_set_t); }
  cpu_set_t* data() { return sets_.data(); }
  const cpu_set_t* data() const { return sets_.data(); }

 private:
  std::vector<cpu_set_t> sets_;
};

}  // namespace tensorsmith
