#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <system_error>

#include "base/result.h"

namespace tensorsmith {

ThreadPool::ThreadPool(int threads) {
  TS_CHECK(threads >= 1, "ThreadPool needs at least one thread");
  workers_.reserve(threads);
  try {
    for (int i = 0; i < threads; ++i) workers_.emplace_back([this] { run_worker(); });
  } catch (const std::system_error&) {
    // If no more threads can be started, the existing ones or the callers themselves do the work.
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run_worker() {
  for (;;) {
    std::packaged_task<void()> task;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

std::future<void> ThreadPool::submit(std::function<void()> fn) {
  std::packaged_task<void()> task(std::move(fn));
  auto future = task.get_future();
  if (workers_.empty()) {
    task();
    return future;
  }
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
  }
  ready_.notify_one();
  return future;
}

void ThreadPool::parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& fn) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t chunk = std::max(grain, n / (4 * (size() + 1)) + 1);
  std::atomic<int64_t> next{0};
  auto work = [&] {
    for (;;) {
      const int64_t begin = next.fetch_add(chunk);
      if (begin >= n) return;
      fn(begin, std::min(n, begin + chunk));
    }
  };
  const int64_t helpers = std::min<int64_t>(size(), (n + chunk - 1) / chunk - 1);
  std::vector<std::future<void>> futures;
  for (int64_t i = 0; i < helpers; ++i) futures.push_back(submit(work));
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
    next = n;
  }
  // The helpers refer to this stack frame, so all of them must finish before it is left.
  for (auto& future : futures) {
    try {
      future.get();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

void for_each_index(int threads, size_t count, const std::function<void(size_t)>& fn) {
  const auto work = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(i);
  };
  if (threads > 1) {
    ThreadPool(threads - 1).parallel_for(count, 1, work);
  } else {
    work(0, count);
  }
}

}  // namespace tensorsmith
