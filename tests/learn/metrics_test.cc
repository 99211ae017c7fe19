#include "learn/metrics.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace tensorsmith::learn::metrics_test {
namespace {

constexpr double kInf = INFINITY;

TEST(MetricsTest, ErrorsByHand) {
  const std::vector<double> truth = {1, 2, 4}, predicted = {1, 3, 2};
  EXPECT_DOUBLE_EQ(rmse(truth, predicted), std::sqrt(5.0 / 3));
  EXPECT_DOUBLE_EQ(rmse({}, {}), 0);
}

TEST(MetricsTest, PairwiseAccuracyByHand) {
  const std::vector<double> labels = {0.5, 1.0, 0.2};
  EXPECT_DOUBLE_EQ(pairwise_accuracy(labels, std::vector<double>{5, 6, 1}), 1);
  EXPECT_DOUBLE_EQ(pairwise_accuracy(labels, std::vector<double>{-5, -6, -1}), 0);
  // Only the pair (0, 1) is wrong: 0.5 < 1.0 but 7 > 6.
  EXPECT_DOUBLE_EQ(pairwise_accuracy(labels, std::vector<double>{7, 6, 1}), 2.0 / 3);
  // Strict >: a tie counts as "not greater".
  EXPECT_DOUBLE_EQ(pairwise_accuracy(std::vector<double>{1, 2}, std::vector<double>{3, 3}), 1);
  EXPECT_DOUBLE_EQ(pairwise_accuracy(std::vector<double>{2, 1}, std::vector<double>{3, 3}), 0);
  EXPECT_DOUBLE_EQ(pairwise_accuracy(std::vector<double>{2}, std::vector<double>{3}), 1);
}

TEST(MetricsTest, PeakByHand) {
  const std::vector<double> labels = {0.2, 0.8, 0.4, 1.0};
  const std::vector<double> scores = {4, 3, 2, 1};
  EXPECT_DOUBLE_EQ(peak_at_k(labels, scores, 1), 0.2);
  EXPECT_DOUBLE_EQ(peak_at_k(labels, scores, 2), (0.2 + 0.8) / 2);
  EXPECT_DOUBLE_EQ(peak_at_k(labels, scores, 3), (0.2 + 0.8 + 0.8) / 3);
  EXPECT_DOUBLE_EQ(peak_at_k(labels, scores, 5), (0.2 + 0.8 + 0.8 + 1 + 1) / 5);
  EXPECT_DOUBLE_EQ(peak_at_k(labels, labels, 1), 1);
  EXPECT_DOUBLE_EQ(peak_at_k(std::vector<double>{0.5, 0.25}, std::vector<double>{0, 1}, 1), 0.5);
  EXPECT_DOUBLE_EQ(peak_at_k(std::vector<double>{0, 0}, std::vector<double>{0, 1}, 1), 0);
}

TEST(MetricsTest, TopKByHand) {
  const std::vector<ScoredTask> network = {{2, {1, 3, 2}, {0.1, 0.9, 0.5}}, {1, {5, 4, kInf}, {3, 2, 1}}};
  EXPECT_DOUBLE_EQ(top_k_score(network, 1), (2 * 1 + 4) / (2 * 3 + 5.0));
  EXPECT_DOUBLE_EQ(top_k_score(network, 2), (2 * 1 + 4) / (2 * 2 + 4.0));
  EXPECT_DOUBLE_EQ(top_k_score(network, 3), 1);
  EXPECT_DOUBLE_EQ(top_k_score(network, 9), 1);
  const std::vector<ScoredTask> failed = {{1, {kInf, 1}, {2, 1}}};
  EXPECT_DOUBLE_EQ(top_k_score(failed, 1), 0);
  EXPECT_DOUBLE_EQ(top_k_score(failed, 2), 1);
}

// The definitions by brute force, in a different form: counting over all permutations of pairs and
// sorting copies.
TEST(MetricsTest, AgreesWithBruteForce) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const size_t n = 2 + rng.below(12);
    std::vector<double> labels, scores;
    for (size_t i = 0; i < n; ++i) {
      labels.push_back(static_cast<double>(1 + rng.below(6)) / 6);
      scores.push_back(static_cast<double>(rng.below(8)));
    }
    double agree = 0, pairs = 0;
    for (size_t j = n; j-- > 0;) {
      for (size_t i = j; i-- > 0;) {
        const bool both = scores[i] > scores[j] && labels[i] > labels[j];
        const bool neither = scores[i] <= scores[j] && labels[i] <= labels[j];
        agree += both || neither ? 1 : 0;
        pairs += 1;
      }
    }
    EXPECT_DOUBLE_EQ(pairwise_accuracy(labels, scores), agree / pairs) << "seed " << seed;

    std::vector<std::pair<double, double>>
        order;  // sorting by negated scores keeps the order of equal ones under stable_sort
    for (size_t i = 0; i < n; ++i) order.emplace_back(-scores[i], labels[i]);
    std::stable_sort(order.begin(), order.end(), [](auto& a, auto& b) { return a.first < b.first; });
    const double best = *std::max_element(labels.begin(), labels.end());
    for (int k = 1; k <= static_cast<int>(n); ++k) {
      double sum = 0;
      for (int i = 1; i <= k; ++i) {
        double peak = 0;
        for (int j = 0; j < i; ++j) peak = std::max(peak, order[static_cast<size_t>(j)].second);
        sum += peak / best;
      }
      EXPECT_NEAR(peak_at_k(labels, scores, k), sum / k, 1e-12) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tensorsmith::learn::metrics_test
