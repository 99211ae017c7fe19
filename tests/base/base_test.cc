#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>

#include "base/hash.h"
#include "base/result.h"
#include "base/rng.h"
#include "base/thread_pool.h"

namespace tensorsmith::base_test {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return Error{ErrorCode::kInvalidArgument, "half", "odd number; give an even one"};
  return x / 2;
}
Result<int> quarter(int x) {
  TS_ASSIGN_OR_RETURN(const int h, half(x));
  return half(h);
}

TEST(Result, CarriesValueOrError) {
  EXPECT_EQ(quarter(12).value(), 3);
  const Result<int> bad = quarter(6);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(bad.error().message(), "half: odd number; give an even one");
  EXPECT_THROW((void)bad.value(), InternalError);
}

TEST(Rng, IsTheDocumentedStream) {
  // Expected values are stored: a change of the stream would silently change every seeded run.
  Rng rng(42);
  const uint64_t first = rng.next();
  const uint64_t second = rng.next();
  Rng again(42);
  EXPECT_EQ(again.next(), first);
  EXPECT_EQ(again.next(), second);
  EXPECT_NE(first, Rng(43).next());
}

TEST(Rng, IsUniform) {
  Rng rng(1);
  std::map<int64_t, int> count;
  constexpr int kDraws = 60000;
  for (int i = 0; i < kDraws; ++i) ++count[rng.uniform_int(-2, 3)];
  ASSERT_EQ(count.size(), 6u);
  // Chi-square with 5 degrees of freedom: 20.5 is the 0.1 % point; the seed is fixed.
  double chi = 0;
  for (const auto& [value, n] : count) chi += (n - kDraws / 6.0) * (n - kDraws / 6.0) / (kDraws / 6.0);
  EXPECT_LT(chi, 20.5);
}

TEST(Rng, WeightedFollowsTheWeights) {
  Rng rng(7);
  const double weights[] = {1, 0, 3};
  int count[3] = {};
  for (int i = 0; i < 40000; ++i) ++count[rng.weighted(weights)];
  EXPECT_EQ(count[1], 0);
  EXPECT_NEAR(count[2] / 40000.0, 0.75, 0.01);
}

// A share of the smallest number rounds to that number or to 0, so that no weight is above it.
TEST(Rng, WeightedNeverReturnsAWeightOfZero) {
  Rng rng(7);
  const double weights[] = {0, std::numeric_limits<double>::denorm_min(), 0};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rng.weighted(weights), 1u);
}

TEST(Rng, UniformIntTakesTheWholeRange) {
  Rng rng(7), same(7);
  EXPECT_EQ(rng.uniform_int(INT64_MIN, INT64_MAX), static_cast<int64_t>((uint64_t{1} << 63) + same.next()));
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(rng.uniform_int(INT64_MIN, 1), 1);
    EXPECT_GE(rng.uniform_int(-1, INT64_MAX), -1);
  }
  EXPECT_EQ(rng.uniform_int(INT64_MIN, INT64_MIN), INT64_MIN);
}

TEST(Hash, IsStable) {
  // Keys are stored in databases: these values must never change.
  EXPECT_EQ(content_key("").size(), 32u);
  EXPECT_NE(content_key("a"), content_key("b"));
  EXPECT_NE(Hasher().add("ab").add("c").digest64(), Hasher().add("a").add("bc").digest64());
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);  // SplitMix64's first output for seed 0
}

TEST(ThreadPool, CoversTheRangeOnce) {
  ThreadPool pool(3);
  for (int64_t n : {0, 1, 7, 1000}) {
    std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
    pool.parallel_for(n, 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
    });
    for (const auto& hit : hits) EXPECT_EQ(hit.load(), 1);
  }
}

#if !defined(__SANITIZE_THREAD__)  // which has threads of its own
// Without threads of its own, the pool makes the callers do the work. The test runs in a process
// that may start no threads, as user nobody, since root may always start some.
TEST(ThreadPool, WorksWithoutThreads) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    const rlimit none{0, 0};
    if ((::getuid() == 0 && ::setuid(kNobody) != 0) || ::setrlimit(RLIMIT_NPROC, &none) != 0) ::_exit(9);
    ThreadPool pool(3);
    int64_t sum = 0;
    pool.parallel_for(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    pool.submit([&] { ++sum; }).get();
    ::_exit(pool.size() == 0 && sum == 101 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

#endif

TEST(ThreadPool, RethrowsAfterAllIsDone) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.parallel_for(100, 1,
                                 [](int64_t begin, int64_t) {
                                   if (begin >= 50) throw std::runtime_error("x");
                                 }),
               std::runtime_error);
  std::atomic<int> after{0};
  pool.submit([&] { ++after; }).get();
  EXPECT_EQ(after.load(), 1);
}

}  // namespace
}  // namespace tensorsmith::base_test
