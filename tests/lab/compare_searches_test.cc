// Searches replayed on a store, and how they are scored.
#include "lab/compare_searches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/scratch_directory.h"
#include "ir/structural.h"
#include "ir/text.h"
#include "search/pipeline.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"

namespace tensorsmith::lab::compare_searches_test {
namespace {

using test::standard::matmul;

class CompareSearches : public ::testing::Test {
 protected:
  CompareSearches() {
    auto writer = learn::StoreWriter::create(path_).value();
    const auto device = writer->add_device(device_.name);
    add(*writer, device, "a", matmul(60, 64, 48), 200);
    add(*writer, device, "b", matmul(32, 96, 40), 150);
    add(*writer, device, "small", matmul(12, 8, 4), 20);
    EXPECT_TRUE(writer->finish().ok());
    store_ = learn::Store::open(path_).value();
    records_.resize(static_cast<size_t>(store_->size()));
    std::iota(records_.begin(), records_.end(), int64_t{0});
    options_.methods = {{"random", "none"}, {"evolutionary", "xgboost"}};
    options_.trials = 40;
    options_.seeds = 2;
  }
  // Adds distinct programs, each with the time that the draft says.
  void add(learn::StoreWriter& writer, uint32_t device, const std::string& name, const ir::Workload& workload,
           size_t count) {
    learn::StoredWorkload stored{
        ir::structural_key(workload), name, ir::print(workload), ir::flop_count(workload), {}};
    const uint32_t number = writer.add_workload(stored);
    const auto space = space::DesignSpace::build(workload, device_, {}).value();
    const auto task = std::make_shared<const search::QueriedTask>(stored, workload, device_);
    search::CandidateFeatures features(space, task, {.leaves = true});
    Rng rng(7);
    std::set<std::string> seen;
    for (size_t attempt = 0; seen.size() < count && attempt < 100 * count; ++attempt) {
      const auto candidate = space.sample(rng);
      learn::StoreRecord record;
      record.trace = space.to_trace(candidate).value();
      if (!seen.insert(sched::print(record.trace)).second) continue;
      record.workload = number;
      record.device = device;
      record.leaves = features.of(candidate).value()->leaves;
      record.mean_seconds = space.estimate(candidate);
      record.seconds = {record.mean_seconds};
      ASSERT_TRUE(writer.add(record).ok());
    }
    ASSERT_EQ(seen.size(), count);
  }
  Result<std::vector<SearchRun>> run(const SimulationOptions& simulation = {}) {
    return simulate_searches(*store_, {&device_}, records_, options_, simulation, log_, progress_, cancel_);
  }

  const ScratchDirectory folder_ = ScratchDirectory::create("tensorsmith-compare").value();
  const std::string path_ = folder_.file("records.store");
  const target::Device device_ = target::find_device("xeon-8358:threads=1").value();
  std::unique_ptr<learn::Store> store_;
  std::vector<int64_t> records_;
  CompareOptions options_;
  NullLogSink log_;
  CompareProgressFn progress_;
  std::atomic<bool> cancel_{false};
};

TEST_F(CompareSearches, EveryTaskMethodAndSeedOnceAndAlwaysTheSame) {
  const auto runs = run();
  ASSERT_TRUE(runs.ok()) << runs.error().message();
  ASSERT_EQ(runs->size(), 8U);  // "small" has too few programs
  for (const SearchRun& r : *runs) {
    EXPECT_EQ(r.best.size(), 40U);
    EXPECT_TRUE(std::is_sorted(r.best.rbegin(), r.best.rend()));
    EXPECT_TRUE(std::is_sorted(r.spent.begin(), r.spent.end()));
    EXPECT_DOUBLE_EQ(r.best.back(), *std::min_element(r.seconds.begin(), r.seconds.end()));
    EXPECT_LE(r.fastest, r.best.back());
    EXPECT_LE(r.best.back(), r.untuned);
    EXPECT_FALSE(r.seen);
  }
  // The fastest of all programs of the task, by brute force.
  for (const SearchRun& r : *runs) {
    double fastest = INFINITY;
    for (int64_t i = 0; i < store_->size(); ++i)
      if (store_->workloads()[store_->entry(i).workload].key == r.task)
        fastest = std::min(fastest, store_->entry(i).mean_seconds);
    EXPECT_DOUBLE_EQ(r.fastest, fastest);
  }
  SimulationOptions two_threads;
  two_threads.threads = 2;
  const auto again = run(two_threads);
  ASSERT_TRUE(again.ok());
  ASSERT_EQ(again->size(), runs->size());
  for (size_t i = 0; i < runs->size(); ++i) EXPECT_EQ((*again)[i].seconds, (*runs)[i].seconds);
}

TEST_F(CompareSearches, AShareIsOfEachTasksPrograms) {
  SimulationOptions tenth;
  tenth.share = 0.1;
  tenth.least_programs = 100;
  const auto runs = run(tenth);
  ASSERT_TRUE(runs.ok());
  for (const SearchRun& r : *runs) EXPECT_EQ(r.best.size(), r.name == "a" ? 20U : 15U);
}

TEST_F(CompareSearches, SaysWhereNothingIsLeft) {
  options_.trials = 4000;
  const auto runs = run();
  ASSERT_FALSE(runs.ok());
  EXPECT_NE(runs.error().message().find("--trials"), std::string::npos);
  options_.methods = {{"evolutionary", "no-such.model"}};
  const auto unknown = run();
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message().find("no-such.model"), std::string::npos) << unknown.error().message();
}

TEST_F(CompareSearches, CancellingKeepsWholeTasks) {
  progress_ = [this](const CompareProgress& p) { cancel_ = p.done > 0; };
  const auto runs = run();
  ASSERT_TRUE(runs.ok());
  EXPECT_LT(runs->size(), 8U);
  EXPECT_EQ(runs->size() % 4, 0U);
}

// Expected values computed by hand, from two tasks and two seeds.
TEST(CompareScores, AreGeometricMeansOverTasks) {
  std::vector<SearchRun> runs(4);
  const double halves[] = {4, 2, 8, 2}, ends[] = {2, 1, 1, 1};
  for (size_t i = 0; i < 4; ++i) {
    runs[i].task = i % 2 == 0 ? "a" : "b";
    runs[i].seed = i / 2;
    runs[i].best = {halves[i], ends[i]};
    runs[i].spent = {1, static_cast<double>(i)};
    runs[i].fastest = 1;
    runs[i].untuned = 4;
  }
  const MethodScore score = score_of(runs, 0, {0.5, 1});
  EXPECT_EQ(score.tasks, 2U);
  const double first[] = {std::sqrt(1. / 8), std::sqrt(1. / 16)};  // after half of the search, by seed
  EXPECT_NEAR(score.mean[0], (first[0] + first[1]) / 2, 1e-12);
  EXPECT_NEAR(score.deviation[0], std::abs(first[0] - first[1]) / std::sqrt(2.), 1e-12);
  EXPECT_NEAR(score.mean[1], (std::sqrt(0.5) + 1) / 2, 1e-12);
  EXPECT_NEAR(score.worst, 0.75, 1e-12);
  EXPECT_NEAR(mean_curve(runs, 0)[1], std::pow(0.5, 0.25), 1e-12);
  EXPECT_NEAR(mean_curve(runs, 0, 1)[0], 0.25, 1e-12);
  EXPECT_NEAR(mean_seconds(runs, 0)[1], 1.5, 1e-12);
  EXPECT_NEAR(gain_over_untuned(runs, 0), std::pow(2. * 4 * 4 * 4, 0.25), 1e-12);
  EXPECT_TRUE(mean_curve(runs, 1).empty());
}

}  // namespace
}  // namespace tensorsmith::lab::compare_searches_test
