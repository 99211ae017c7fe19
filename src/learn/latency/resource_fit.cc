#include "learn/latency/resource_fit.h"

#include <algorithm>
#include <cmath>

#include "base/statistics.h"

namespace tensorsmith::learn {

namespace {

constexpr int kReweightings = 25;
constexpr int kSweeps = 400;
constexpr double kCorner = 0.05;

// Minimizes x' G x / 2 - b' x over x >= 0 by coordinate descent, starting from x.
void solve_nonnegative(const std::vector<double>& gram, const std::vector<double>& right,
                       std::vector<double>& x) {
  const size_t n = x.size();
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double moved = 0, size = 0;
    for (size_t j = 0; j < n; ++j) {
      double slope = -right[j];
      for (size_t k = 0; k < n; ++k) slope += gram[j * n + k] * x[k];
      const double next = std::max(0.0, x[j] - slope / gram[j * n + j]);
      moved = std::max(moved, std::abs(next - x[j]));
      size = std::max(size, next);
      x[j] = next;
    }
    if (moved <= 1e-9 * size) break;
  }
}

}  // namespace

std::vector<double> fit_factors(std::span<const double> rows, std::span<const double> weights, size_t width,
                                std::span<const double> prior, double ridge) {
  if (weights.empty()) return {};
  const double count = weights.size();
  std::vector<double> scale(width, 0), x(width, 0);
  for (size_t i = 0; i < weights.size(); ++i) {
    for (size_t j = 0; j < width; ++j) scale[j] += rows[i * width + j] * rows[i * width + j];
  }
  for (double& s : scale) s = std::sqrt(s / count) + 1e-12;
  for (size_t j = 0; j < prior.size(); ++j) x[j] = prior[j] * scale[j];
  std::vector<double> scaled(rows.begin(), rows.end()), now(weights.begin(), weights.end());
  for (size_t i = 0; i < weights.size(); ++i) {
    for (size_t j = 0; j < width; ++j) scaled[i * width + j] /= scale[j];
  }
  std::vector<double> gram(width * width), right(width);
  for (int round = 0; round < kReweightings; ++round) {
    std::fill(gram.begin(), gram.end(), 0);
    std::fill(right.begin(), right.end(), 0);
    for (size_t i = 0; i < weights.size(); ++i) {
      const double* row = scaled.data() + i * width;
      for (size_t j = 0; j < width; ++j) {
        if (row[j] == 0) continue;
        const double weighted = now[i] * row[j];
        right[j] += weighted;
        for (size_t k = 0; k <= j; ++k) gram[j * width + k] += weighted * row[k];
      }
    }
    for (size_t j = 0; j < width; ++j) {
      gram[j * width + j] += ridge * count;
      if (!prior.empty()) right[j] += ridge * count * prior[j] * scale[j];
      for (size_t k = 0; k < j; ++k) gram[k * width + j] = gram[j * width + k];
    }
    solve_nonnegative(gram, right, x);
    for (size_t i = 0; i < weights.size(); ++i) {
      double error = -1;
      for (size_t j = 0; j < width; ++j) error += scaled[i * width + j] * x[j];
      now[i] = weights[i] / std::sqrt(error * error + kCorner * kCorner);
    }
  }
  for (size_t j = 0; j < width; ++j) x[j] /= scale[j];
  return x;
}

double factor_scale(std::span<const double> rows, std::span<const double> prior) {
  std::vector<double> sums;
  for (size_t i = 0; i + prior.size() <= rows.size(); i += prior.size()) {
    double sum = 0;
    for (size_t j = 0; j < prior.size(); ++j) sum += prior[j] * rows[i + j];
    sums.push_back(sum);
  }
  if (sums.empty()) return 1;
  const double middle = median(std::move(sums));
  return middle > 0 ? 1 / middle : 1;
}

}  // namespace tensorsmith::learn
