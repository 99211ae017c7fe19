// Builds run concurrently as far as memory allows.
#include "measure/build_pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/standard_workloads.h"

namespace tensorsmith::measure::build_pipeline_test {
namespace {

// Takes a while and counts how many of its builds run concurrently.
class Slow final : public Builder {
 public:
  explicit Slow(double seconds) : seconds_(seconds) {}
  BuildResult build(const ir::Workload&, const sched::Trace&) const override {
    const int now = ++running_;
    int before = most_;
    while (before < now && !most_.compare_exchange_weak(before, now)) {
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
    --running_;
    return BuildFailure{record::Outcome::kBuildError, "a test's"};
  }
  int most() const { return most_; }

 private:
  double seconds_;
  mutable std::atomic<int> running_{0}, most_{0};
};

int most_at_once(int64_t memory_bytes) {
  const auto builder = std::make_shared<Slow>(0.03);
  BuildPipeline pipeline(builder, 3, 8, memory_bytes);
  pipeline.start(test::standard::matmul(4, 4, 4), std::vector<sched::Trace>(9));
  pipeline.allow(9);
  for (size_t i = 0; i < 9; ++i)
    EXPECT_EQ(std::get<BuildFailure>(pipeline.take(i).result).reason, "a test's");
  return builder->most();
}

TEST(BuildPipeline, BuildsOneAtATimeWhereMemoryIsShort) {
  EXPECT_EQ(most_at_once(1), 1);  // this process always uses more than one byte
  EXPECT_GT(most_at_once(0), 1);
  EXPECT_GT(most_at_once(int64_t{1} << 46), 1);
}

// Does not return before it is released.
class Stuck final : public Builder {
 public:
  BuildResult build(const ir::Workload&, const sched::Trace&) const override {
    released_.wait(false);
    return BuildFailure{record::Outcome::kBuildError, "a test's"};
  }
  void release() {
    released_ = true;
    released_.notify_all();
  }

 private:
  std::atomic<bool> released_{false};
};

// An abandoned build holds up no other, whatever memory it takes; else this test would never end.
TEST(BuildPipeline, ABuildThatIsGivenUpIsNothingToWaitFor) {
  const auto builder = std::make_shared<Stuck>();
  BuildPipeline pipeline(builder, 1, 0.05, 1);
  pipeline.start(test::standard::matmul(4, 4, 4), std::vector<sched::Trace>(2));
  pipeline.allow(2);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(std::get<BuildFailure>(pipeline.take(i).result).outcome, record::Outcome::kBuildTimeout);
  builder->release();
}

}  // namespace
}  // namespace tensorsmith::measure::build_pipeline_test
