// A pool for the tuner's own work (features, scoring, code generation). Compiled models use another
// one, in runtime.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace tensorsmith {

class ThreadPool {
 public:
  // `threads` is the number of worker threads, >= 1. If the system refuses to start one, the pool
  // has only those started so far; without any, the callers do the work themselves.
  explicit ThreadPool(int threads);
  ~ThreadPool();  // finishes queued work
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return workers_.size(); }

  // Queues fn; the future's get() rethrows an exception that fn throws.
  std::future<void> submit(std::function<void()> fn);

  // Calls fn(begin, end) on disjoint chunks that cover [0, n), with the caller's help; returns when
  // all are done. The first exception is rethrown. Chunks have at least `grain` items. Thread-safe.
  void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& fn);

 private:
  void run_worker();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::packaged_task<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

// Calls fn(i) for each i in [0, count) on `threads` threads, one of which is the calling thread, and returns
// when all calls are done. If `threads` is 1, no thread is started. The first exception is rethrown.
void for_each_index(int threads, size_t count, const std::function<void(size_t)>& fn);

}  // namespace tensorsmith
