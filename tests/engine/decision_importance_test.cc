// Shares of the spread of times, checked against sums over pairs of programs, all permutations of a
// few times, and planted effects.
#include "engine/report/decision_importance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "base/rng.h"

namespace tensorsmith::engine::decision_importance_test {
namespace {

// Sum of squares about the mean of some programs, computed as half the sum of squared differences
// of all pairs divided by their number.
double squares(const std::vector<double>& logs, const std::vector<size_t>& programs) {
  double sum = 0;
  for (const size_t a : programs)
    for (const size_t b : programs) sum += (logs[a] - logs[b]) * (logs[a] - logs[b]);
  return programs.empty() ? 0 : sum / (2 * static_cast<double>(programs.size()));
}

// One minus the ratio of the unbiased variances, weighted by the squares of each group.
double share_by_pairs(const std::vector<double>& logs, const DecisionColumn& column) {
  std::map<int, std::vector<size_t>> groups;
  std::vector<size_t> all(logs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  for (const size_t p : all)
    if (column.group[p] >= 0) groups[column.group[p]].push_back(p);
  double explained = 0;
  for (const auto& [group, programs] : groups) {
    std::map<int64_t, std::vector<size_t>> cells;
    for (const size_t p : programs) cells[column.value[p]].push_back(p);
    if (cells.size() < 2 || cells.size() == programs.size()) continue;
    double within = 0;
    for (const auto& [value, members] : cells) within += squares(logs, members);
    const double whole = squares(logs, programs);
    if (whole == 0) continue;
    const double n = static_cast<double>(programs.size()), k = static_cast<double>(cells.size());
    explained += whole * (1 - within / (n - k) / (whole / (n - 1)));
  }
  return explained / squares(logs, all);
}

TEST(DecisionImportance, AgreesWithSumsOverPairs) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  for (int round = 0; round < 200; ++round) {
    const auto n = static_cast<size_t>(rng.uniform_int(2, 40));
    std::vector<double> logs;
    for (size_t p = 0; p < n; ++p) logs.push_back(-7 + rng.normal());
    std::vector<DecisionColumn> columns(3);
    for (DecisionColumn& column : columns) {
      const int64_t groups = rng.uniform_int(1, 3), values = rng.uniform_int(1, 6);
      for (size_t p = 0; p < n; ++p) {
        column.group.push_back(static_cast<int>(rng.uniform_int(-1, groups - 1)));
        column.value.push_back(rng.uniform_int(0, values - 1));
      }
    }
    const auto found = explained_spread(logs, columns, 0, 1);
    ASSERT_EQ(found.size(), columns.size());
    for (size_t c = 0; c < columns.size(); ++c)
      EXPECT_NEAR(found[c].share, share_by_pairs(logs, columns[c]), 1e-9);
  }
}

TEST(DecisionImportance, ChanceExplainsNothingOnAverage) {
  const DecisionColumn column{{0, 0, 0, 0, 0, 0, 0}, {4, 4, 8, 8, 8, 16, 16}};
  std::vector<double> logs{0.1, 0.3, 0.35, 1.2, 2.5, 2.6, 9};
  std::vector<double> shares;
  std::sort(logs.begin(), logs.end());
  do {
    shares.push_back(explained_spread(logs, {column}, 0, 1)[0].share);
  } while (std::next_permutation(logs.begin(), logs.end()));
  ASSERT_EQ(shares.size(), 5040U);
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0) / 5040, 0, 1e-9);
  // The share that shuffles exceed in one of twenty cases agrees with that of all permutations:
  // their ranks are within those of 20,000 draws.
  std::sort(shares.begin(), shares.end());
  const double chance = explained_spread(logs, {column}, 20'000, 7)[0].chance;
  EXPECT_GE(chance, shares[static_cast<size_t>(0.94 * 5040)] - 1e-9);
  EXPECT_LE(chance, shares[static_cast<size_t>(0.96 * 5040)] + 1e-9);
}

TEST(DecisionImportance, FindsWhatDecidesAndNotWhatOnlyFollowsTheGroup) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  std::vector<double> logs;
  DecisionColumn structure, decides, idle, follows;
  for (int p = 0; p < 400; ++p) {
    const int group = p % 2;
    const int64_t tile = rng.uniform_int(0, 3);
    structure.group.push_back(0);
    structure.value.push_back(group);
    for (DecisionColumn* column : {&decides, &idle, &follows}) column->group.push_back(group);
    decides.value.push_back(tile);
    idle.value.push_back(rng.uniform_int(0, 3));
    follows.value.push_back(group);  // differs between structures, but is constant in each
    // Variances: 1 for the structure, 1.25 for the tile, 0.25 for the noise.
    logs.push_back(2 * group + static_cast<double>(tile) + 0.5 * rng.normal());
  }
  const auto found = explained_spread(logs, {structure, decides, idle, follows}, 200, 1);
  EXPECT_NEAR(found[0].share, 1 / 2.5, 0.1);
  EXPECT_NEAR(found[1].share, 1.25 / 2.5, 0.1);
  EXPECT_GT(found[1].share, found[1].chance);
  EXPECT_LT(std::abs(found[2].share), 0.06);
  EXPECT_EQ(found[3].share, 0);
}

TEST(DecisionImportance, NothingToExplain) {
  EXPECT_TRUE(explained_spread({}, {}, 10, 1).empty());
  const DecisionColumn column{{0, 0, 0}, {1, 2, 2}};
  EXPECT_EQ(explained_spread({3, 3, 3}, {column}, 10, 1)[0].share, 0);
  EXPECT_EQ(explained_spread({3}, {{{0}, {1}}}, 10, 1)[0].share, 0);
}

}  // namespace
}  // namespace tensorsmith::engine::decision_importance_test
