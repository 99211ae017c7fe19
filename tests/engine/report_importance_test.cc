// Importance of decisions in a report, for effects planted in the times of sampled programs.
#include "engine/report/report_importance.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <set>

#include "base/rng.h"
#include "ir/structural.h"
#include "ir/text.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"

namespace tensorsmith::engine::report_importance_test {
namespace {

class ReportImportanceTest : public ::testing::Test {
 protected:
  ReportImportanceTest() {
    SCOPED_TRACE("seed " + std::to_string(seed_));
    ReportSetup& setup = report_.setups.emplace_back();
    setup.device = device_;
    setup.settings.threads = device_.cpu().cores;
    ReportTask& task = report_.tasks.emplace_back();
    task.key = ir::structural_key(workload_);
    task.text = ir::print(workload_);
  }
  // Adds sampled programs, whose time is a function of the candidate.
  template <class Seconds>
  void add(int count, Seconds seconds) {
    std::set<uint64_t> seen;
    for (int i = 0; i < 50 * count && std::cmp_less(seen.size(), count); ++i) {
      const space::Candidate candidate = space_.sample(rng_);
      if (!seen.insert(candidate.hash()).second) continue;
      ReportRecord& record = report_.tasks[0].records.emplace_back();
      record.seconds = seconds(candidate);
      record.trace = sched::print(space_.to_trace(candidate).value());
      record.point = record::DesignPoint{candidate.sketch, candidate.decisions};
    }
  }

  const unsigned seed_ = std::random_device{}();
  Rng rng_{seed_};
  const target::Device device_ = target::find_device("epyc-9654:threads=2").value();
  const ir::Workload workload_ = test::standard::matmul(64, 64, 64);
  const space::DesignSpace space_ = space::DesignSpace::build(workload_, device_, {}).value();
  Report report_;
};

// Returns the value of the candidate's decision with this name on the page; -1 if its structure
// does not have it.
int64_t decision(const space::DesignSpace& space, const space::Candidate& candidate,
                 const std::string& name) {
  size_t at = 0;
  for (const space::DecisionSlot& slot : space.slots(candidate.sketch)) {
    const size_t width = slot.kind == space::DecisionKind::kTileLengths ? slot.parts : 1;
    for (size_t k = 0; k < width; ++k, ++at) {
      const std::string part = std::to_string(k + 1) + "/" + std::to_string(width);
      if ((width > 1 ? slot.name + " " + part : slot.name) == name) return candidate.decisions[at];
    }
  }
  return -1;
}

TEST_F(ReportImportanceTest, TheDecisionThatDecidesComesFirst) {
  // A first pass finds the names; the decision with the most values is given the effect in the
  // second pass.
  add(300, [&](const space::Candidate&) { return 1e-3 * std::exp(0.1 * rng_.normal()); });
  add_importance(2, report_);
  ASSERT_TRUE(report_.tasks[0].importance.has_value());
  EXPECT_EQ(report_.tasks[0].importance->programs, 300);
  int above = 0;
  for (const ReportDecision& d : report_.tasks[0].importance->decisions) above += d.share > d.chance;
  const auto decisions = static_cast<double>(report_.tasks[0].importance->decisions.size());
  EXPECT_LE(above, 3 + 0.25 * decisions) << "of random times, seed " << seed_;
  const auto has_values = [&](const ReportDecision& d) {
    std::set<int64_t> values;
    for (const ReportRecord& record : report_.tasks[0].records)
      values.insert(decision(space_, {record.point->sketch, record.point->decisions}, d.name));
    return d.role == "tile" && values.size() >= 4;
  };
  std::string name;
  for (const ReportDecision& d : report_.tasks[0].importance->decisions)
    if (has_values(d)) name = d.name;
  ASSERT_NE(name, "");
  report_.tasks[0].records.clear();
  add(300, [&](const space::Candidate& candidate) {
    const int64_t length = decision(space_, candidate, name);
    return 1e-3 * std::exp((length < 0 ? 0 : std::log2(static_cast<double>(length))) + 0.1 * rng_.normal());
  });
  add_importance(2, report_);
  const ReportImportance& importance = *report_.tasks[0].importance;
  // If few structures have the decision, the structure can explain a part of the effect.
  const size_t place = importance.decisions[0].role == "structure" ? 1 : 0;
  EXPECT_EQ(importance.decisions[place].name, name) << "seed " << seed_;
  EXPECT_GT(importance.decisions[place].share, 2 * importance.decisions[place].chance);
  ASSERT_FALSE(importance.decisions[place].values.empty());
  for (const ReportDecisionValue& value : importance.decisions[place].values) {
    EXPECT_GT(value.count, 0);
    EXPECT_LE(value.best_seconds, value.median_seconds);
  }
}

TEST_F(ReportImportanceTest, OnlyProgramsThatRanAndAreStillPointsOfTheSpace) {
  add(60, [&](const space::Candidate&) { return 1e-3 * std::exp(rng_.normal()); });
  std::vector<ReportRecord>& records = report_.tasks[0].records;
  ASSERT_EQ(records.size(), 60U);
  records[0].outcome = record::Outcome::kCrash;
  records[1].plausible = false;
  records[2].point.reset();
  records[3].trace += "\n";
  records[4].point->decisions.push_back(1);
  records[5].point->sketch = 1'000'000;
  records[6].point->sketch = -1;
  add_importance(1, report_);
  EXPECT_EQ(report_.tasks[0].importance->programs, 53);
  records.resize(13);
  add_importance(1, report_);
  EXPECT_FALSE(report_.tasks[0].importance.has_value()) << "six programs say nothing";
}

}  // namespace
}  // namespace tensorsmith::engine::report_importance_test
