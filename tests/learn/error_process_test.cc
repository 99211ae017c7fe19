// Errors of a cost model within a task, as a Gaussian process over features.
#include "learn/online/error_process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"

namespace tensorsmith::learn::error_process_test {
namespace {

// Two features: the program's place on a line, and a constant, which says nothing.
std::vector<std::vector<float>> on_a_line(size_t count) {
  std::vector<std::vector<float>> features;
  for (size_t i = 0; i < count; ++i) features.push_back({static_cast<float>(i), 3.0F});
  return features;
}

TEST(ProgramPointsTest, ColumnsAreScaledAndConstantOnesLeftOut) {
  const ProgramPoints points({{0, 7, 100}, {2, 7, 300}});
  // Two columns are left, in each of which the two programs lie at -1 and 1.
  EXPECT_NEAR(points.squared_distance(0, 1), (4.0 + 4.0) / 2, 1e-5);
  EXPECT_EQ(points.row(0).size(), 2U);
}

// Solves a x = b by Gaussian elimination with pivots.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t c = 0; c < n; ++c) {
    size_t pivot = c;
    for (size_t r = c; r < n; ++r)
      if (std::abs(a[r][c]) > std::abs(a[pivot][c])) pivot = r;
    std::swap(a[c], a[pivot]);
    std::swap(b[c], b[pivot]);
    for (size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double factor = a[r][c] / a[c][c];
      for (size_t k = c; k < n; ++k) a[r][k] -= factor * a[c][k];
      b[r] -= factor * b[c];
    }
  }
  for (size_t c = 0; c < n; ++c) b[c] /= a[c][c];
  return b;
}

// The textbook's formulas with a dense solver: mean and variance at `at` for one length and amplitude.
std::pair<double, double> dense(const ProgramPoints& points, const std::vector<size_t>& measured,
                                const std::vector<double>& errors, double length, double amplitude,
                                size_t at) {
  const auto kernel = [&](size_t i, size_t j) {
    const double r = std::sqrt(5 * points.squared_distance(i, j)) / length;
    return amplitude * amplitude * (1 + r + r * r / 3) * std::exp(-r) + 0.1;
  };
  double offset = 0;
  for (const double e : errors) offset += e / static_cast<double>(errors.size());
  std::vector<std::vector<double>> covariance;
  std::vector<double> centered, cross;
  for (size_t i = 0; i < measured.size(); ++i) {
    covariance.emplace_back();
    for (size_t j = 0; j < measured.size(); ++j)
      covariance.back().push_back(kernel(measured[i], measured[j]) + (i == j ? 0.05 * 0.05 : 0));
    centered.push_back(errors[i] - offset);
    cross.push_back(kernel(measured[i], at));
  }
  const auto weights = solve(covariance, centered), reduced = solve(covariance, cross);
  double mean = offset, variance = kernel(at, at);
  for (size_t i = 0; i < measured.size(); ++i) {
    mean += cross[i] * weights[i];
    variance -= cross[i] * reduced[i];
  }
  return {mean, variance};
}

// The process equals the dense solution for one of the 16 lengths and amplitudes of its grid.
TEST(ErrorProcessTest, EqualsTheDenseSolution) {
  const uint64_t seed = 5;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  std::vector<std::vector<float>> features;
  for (int i = 0; i < 40; ++i) {
    features.emplace_back();
    for (int c = 0; c < 6; ++c) features.back().push_back(static_cast<float>(rng.normal()));
  }
  const ProgramPoints points(features);
  const std::vector<size_t> measured{3, 11, 4, 30, 22, 9};
  std::vector<double> errors;
  for (const size_t m : measured) errors.push_back(0.4 * static_cast<double>(features[m][0]) + 0.1);
  const double sigma = 0.4;
  const ErrorProcess process(points, measured, errors, sigma);
  double closest = 1e9;
  for (const double length : {0.5, 1.0, 2.0, 4.0})
    for (const double amplitude : {0.375, 0.75, 1.5, 2.5}) {
      double difference = 0;
      for (size_t at = 0; at < points.size(); ++at) {
        const auto [mean, variance] = dense(points, measured, errors, length, amplitude * sigma, at);
        difference = std::max(
            {difference, std::abs(mean - process.mean(at)), std::abs(variance - process.variance(at))});
      }
      closest = std::min(closest, difference);
    }
  EXPECT_LT(closest, 1e-6);
}

TEST(ErrorProcessTest, NearProgramsShareErrorsAndAssumingLowersVariancesOnly) {
  const auto features = on_a_line(101);
  const ProgramPoints points(features);
  const std::vector<size_t> measured{0, 1, 50, 51, 100};
  const std::vector<double> errors{1, 1, 0, 0, -1};
  ErrorProcess process(points, measured, errors, 0.5);
  EXPECT_NEAR(process.mean(0), 1, 0.15);
  EXPECT_NEAR(process.mean(50), 0, 0.15);
  EXPECT_GT(process.mean(5), process.mean(45));
  EXPECT_LT(process.variance(2), process.variance(25));
  const double mean = process.mean(25), near = process.variance(26), at = process.variance(25);
  process.assume(25);
  EXPECT_DOUBLE_EQ(process.mean(25), mean);
  EXPECT_LT(process.variance(25), 0.5 * at);
  EXPECT_LT(process.variance(26), near);
}

}  // namespace
}  // namespace tensorsmith::learn::error_process_test
