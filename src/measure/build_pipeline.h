// Builds candidates on background threads while others run.
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

// Builds a list of traces in order, but only as far as allow() permits, on up to the requested
// number of threads; fewer if the system provides no more. A build is given up if it takes more
// processor time than its timeout, or four times as much wall time (more than the timeout, because
// on a busy machine the candidate is not to blame). Its thread is replaced, and joined when the
// pipeline is destroyed.
class BuildPipeline {
 public:
  // memory_bytes: while this process uses more, no build starts beside another; 0 = no limit.
  BuildPipeline(std::shared_ptr<const Builder> builder, int threads, double timeout_s, int64_t memory_bytes);
  ~BuildPipeline();
  BuildPipeline(const BuildPipeline&) = delete;
  BuildPipeline& operator=(const BuildPipeline&) = delete;

  int threads() const { return threads_.size(); }
  // Replaces the list; nothing is built before allow().
  void start(const ir::Workload& workload, std::vector<sched::Trace> traces);
  // Allows the first `count` elements of the list to be built.
  void allow(size_t count);
  // Waits for the result of list element i, which must be less than the allowed count.
  TimedBuild take(size_t i);
  // Waits until all allowed builds are done or given up, so that no active thread of this pipeline
  // disturbs a timing.
  void wait_allowed();

 private:
  enum class State { kWaiting, kBuilding, kDone, kTimedOut };
  struct Slot {
    State state = State::kWaiting;
    double started = 0;
    clockid_t cpu_clock = 0;  // of the building thread
    double cpu_started = 0;
    bool replaced = false;  // timed out, and another thread has taken over
    TimedBuild build;
  };
  struct Job {
    ir::Workload workload;
    std::vector<sched::Trace> traces;
    std::vector<Slot> slots;
    size_t next = 0;
    size_t allowed = 0;
  };
  // State shared with threads whose builds were given up.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::shared_ptr<const Builder> builder;
    std::shared_ptr<Job> job;
    bool stopping = false;
    int building = 0;
    int64_t memory_bytes = 0;
    bool has_next() const { return job && job->next < job->allowed; }
    // Whether a thread may start the next build; the lock must be held.
    bool may_begin() const;
  };

  // Returns false if the system provides no thread.
  bool add_thread();
  static void run_thread(const std::shared_ptr<Shared>& shared);
  // Least seconds that the build of this slot may still take; <= 0: it has timed out.
  double seconds_left(const Slot& slot) const;
  // Waits until slot i is done or given up; the lock must be held.
  void wait_for(size_t i, std::unique_lock<std::mutex>& lock);

  double timeout_s_;
  std::shared_ptr<Shared> shared_;
  std::vector<std::thread> threads_;
};

}  // namespace tensorsmith::measure
