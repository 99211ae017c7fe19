// Builds candidates on threads of its own while others run.
#pragma once

#include <time.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "measure/builder.h"

namespace tensorsmith::measure {

struct TimedBuild {
  BuildResult result;
  double seconds = 0;
};

// Threads that build one list of traces in order, at most as far as allow() says; fewer than asked for where
// the system gives no more. A build that takes more processor time than its timeout (or four times as much
// wall time: on a busy machine the candidate is not to blame) is given up: its thread is replaced, and joined
// when the pipeline is destroyed.
class BuildPipeline {
 public:
  // memory_bytes: while this process takes more, no build begins beside another; 0 = no limit.
  BuildPipeline(std::shared_ptr<const Builder> builder, int threads, double timeout_s, int64_t memory_bytes);
  ~BuildPipeline();
  BuildPipeline(const BuildPipeline&) = delete;
  BuildPipeline& operator=(const BuildPipeline&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }
  // Forgets the list before; nothing is built before allow().
  void start(const ir::Workload& workload, std::vector<sched::Trace> traces);
  // The first `count` of the list may be built.
  void allow(size_t count);
  // The result of list element i < the allowed count; waits for it.
  TimedBuild take(size_t i);
  // Waits until all allowed builds are done or given up, so that no thread of this pipeline that can still
  // matter disturbs a timing.
  void wait_allowed();

 private:
  enum class State { kWaiting, kBuilding, kDone, kTimedOut };
  struct Slot {
    State state = State::kWaiting;
    double started = 0;
    clockid_t cpu_clock = 0;  // of the thread that builds
    double cpu_started = 0;
    bool replaced = false;  // timed out, and the system gave another thread
    TimedBuild build;
  };
  struct Job {
    ir::Workload workload;
    std::vector<sched::Trace> traces;
    std::vector<Slot> slots;
    size_t next = 0;
    size_t allowed = 0;
  };
  // Shared with threads that were given up.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::shared_ptr<const Builder> builder;
    std::shared_ptr<Job> job;
    bool stopping = false;
    int building = 0;
    int64_t memory_bytes = 0;
    bool has_next() const { return job && job->next < job->allowed; }
    // Whether a thread may begin with the next of the list; the lock is held.
    bool may_begin() const;
  };

  // False if the system gives none.
  bool add_thread();
  static void run_thread(const std::shared_ptr<Shared>& shared);
  // Seconds that the build of this slot may still take, at least; <= 0: its time is over.
  double seconds_left(const Slot& slot) const;
  // Waits until slot i is done or given up; the lock is held.
  void wait_for(size_t i, std::unique_lock<std::mutex>& lock);

  double timeout_s_;
  std::shared_ptr<Shared> shared_;
  std::vector<std::thread> threads_;
};

}  // namespace tensorsmith::measure
