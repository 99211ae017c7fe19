#include "runtime/kernel_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "base/rng.h"

namespace tensorsmith::runtime::kernel_pool_test {
namespace {

using Chunk = std::pair<int64_t, int64_t>;

// Runs fn(begin, end, thread) through the C interface.
template <class Fn>
void run(KernelPool& pool, int64_t n, Fn& fn) {
  KernelPool::parallel_for_abi(
      &pool, n,
      [](void* closure, int64_t begin, int64_t end, int32_t thread) {
        (*static_cast<Fn*>(closure))(begin, end, thread);
      },
      &fn);
}

TEST(KernelPool, EveryIterationRunsOnceWhateverTheSizes) {
  for (int threads : {1, 2, 3, 4, 7, 16}) {
    KernelPool pool(threads);
    ASSERT_EQ(pool.num_threads(), threads);
    for (int64_t n : {0, 1, 2, 3, 5, 7, 16, 17, 100, 1001}) {
      std::vector<std::atomic<int>> counts(static_cast<size_t>(n));
      std::atomic<int> calls{0};
      auto body = [&](int64_t begin, int64_t end, int32_t thread) {
        ASSERT_GE(thread, 0);
        ASSERT_LT(thread, threads);
        ASSERT_LT(begin, end);
        ++calls;
        for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
      };
      run(pool, n, body);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(counts[static_cast<size_t>(i)], 1) << threads << " " << n;
      EXPECT_GE(calls, std::min<int64_t>(n, threads));
      EXPECT_LE(calls, 4 * threads);
    }
  }
}

TEST(KernelPool, PiecesDoNotCrossTheRangesOfThreads) {
  KernelPool pool(4);
  std::vector<Chunk> chunks(16);
  std::atomic<size_t> used{0};
  auto body = [&](int64_t begin, int64_t end, int32_t) { chunks[used++] = {begin, end}; };
  run(pool, 30, body);  // ranges of 8, 8, 7 and 7
  ASSERT_EQ(used, 16u);
  std::sort(chunks.begin(), chunks.end());
  EXPECT_EQ(chunks, (std::vector<Chunk>{{0, 2},
                                        {2, 4},
                                        {4, 6},
                                        {6, 8},
                                        {8, 10},
                                        {10, 12},
                                        {12, 14},
                                        {14, 16},
                                        {16, 18},
                                        {18, 20},
                                        {20, 22},
                                        {22, 23},
                                        {23, 25},
                                        {25, 27},
                                        {27, 29},
                                        {29, 30}}));
}

TEST(KernelPool, OneThreadRunsOnTheCaller) {
  KernelPool pool(1);
  const auto self = std::this_thread::get_id();
  auto body = [&](int64_t, int64_t, int32_t thread) {
    EXPECT_EQ(std::this_thread::get_id(), self);
    EXPECT_EQ(thread, 0);
  };
  run(pool, 100, body);
}

// Two chunks wait for each other: this passes only if two threads really run at the same time.
TEST(KernelPool, ChunksRunConcurrently) {
  KernelPool pool(2);
  std::atomic<int> arrived{0};
  std::set<std::thread::id> ids;
  std::mutex mutex;
  auto body = [&](int64_t, int64_t, int32_t) {
    {
      std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    }
    ++arrived;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (arrived < 2 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  };
  // The caller may take both chunks if the worker is late, so try again.
  for (int i = 0; i < 100 && ids.size() < 2; ++i) {
    arrived = 0;
    run(pool, 2, body);
  }
  EXPECT_EQ(ids.size(), 2u);
}

TEST(KernelPool, WorkersKeepOffTheCallersProcessor) {
  if (available_processors() < 2) GTEST_SKIP() << "needs two processors";
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  KernelPool pool(2);
  // The caller moves to each processor in turn, and so also to the worker's processor.
  for (int round = 0, own = -1; round < 300; ++round) {
    if (round % 10 == 0) {
      do own = (own + 1) % CPU_SETSIZE;
      while (!CPU_ISSET(own, &before));
      CPU_ZERO(&one);
      CPU_SET(own, &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
      std::this_thread::sleep_for(std::chrono::microseconds(200));  // the worker falls asleep
    }
    std::atomic<int> started{0}, together{0};
    auto body = [&](int64_t, int64_t, int32_t thread) {
      if (thread != 0 && sched_getcpu() == own) ++together;
      ++started;
      while (started < 2) {
      }
    };
    run(pool, 2, body);
    EXPECT_EQ(together, 0) << "processor " << own << ", round " << round;
  }
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

// A team that does not spin, since cgroups give less time than it has threads, computes the same.
TEST(KernelPool, ATeamBeyondTheQuotaSleepsAndWakes) {
  Processors machine = processors();
  machine.quota = machine.at_once = machine.usable = 1;
  KernelPool pool(3, machine);
  ASSERT_EQ(pool.num_threads(), 3);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int64_t> sum{0};
    auto body = [&](int64_t begin, int64_t end, int32_t) {
      for (int64_t i = begin; i < end; ++i) sum += i;
    };
    run(pool, 101, body);
    ASSERT_EQ(sum, 5050);
  }
}

TEST(KernelPool, NestedCallRunsInlineWithTheSameThreadIndex) {
  KernelPool pool(4);
  std::atomic<int64_t> sum{0};
  auto outer = [&](int64_t begin, int64_t end, int32_t thread) {
    for (int64_t i = begin; i < end; ++i) {
      const auto self = std::this_thread::get_id();
      auto inner = [&](int64_t b, int64_t e, int32_t inner_thread) {
        EXPECT_EQ(inner_thread, thread);
        EXPECT_EQ(std::this_thread::get_id(), self);
        EXPECT_EQ(b, 0);
        EXPECT_EQ(e, 10);
        sum += e - b;
      };
      run(pool, 10, inner);
    }
  };
  run(pool, 8, outer);
  EXPECT_EQ(sum, 80);
}

TEST(KernelPool, SeveralCallersNeverMixTheirJobs) {
  KernelPool pool(3);
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&pool] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<int64_t> sum{0};
        auto body = [&](int64_t begin, int64_t end, int32_t) {
          for (int64_t i = begin; i < end; ++i) sum += i;
        };
        run(pool, 101, body);
        ASSERT_EQ(sum, 5050);
      }
    });
  }
  for (auto& caller : callers) caller.join();
}

// Ordinary memory written by the bodies is visible after the call; random pauses make workers spin,
// sleep and come late.
TEST(KernelPool, ManyJobsWithPausesOnMoreThreadsThanProcessors) {
  const uint64_t seed = 20260101;
  Rng rng(seed);
  SCOPED_TRACE(seed);
  for (int threads : {2, available_processors() * 3}) {
    KernelPool pool(threads);
    std::vector<int64_t> data(1000);
    for (int round = 0; round < 3000; ++round) {
      const auto n = static_cast<int64_t>(rng.below(data.size()) + 1);
      auto body = [&](int64_t begin, int64_t end, int32_t) {
        for (int64_t i = begin; i < end; ++i) data[static_cast<size_t>(i)] = i * round;
      };
      run(pool, n, body);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(data[static_cast<size_t>(i)], i * round);
      if (rng.below(20) == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng.below(200)));
    }
  }
}

TEST(KernelPool, StartsAndStopsWithoutWork) {
  for (int i = 0; i < 50; ++i) KernelPool pool(4);
}

}  // namespace
}  // namespace tensorsmith::runtime::kernel_pool_test
