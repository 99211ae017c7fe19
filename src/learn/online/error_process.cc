#include "learn/online/error_process.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/result.h"

namespace tensorsmith::learn {

namespace {

// The constants were chosen on the validation part of recorded searches
// (docs/decisions/057-choice-of-batches.md has the command).
constexpr double kConstantVariance = 0.1;  // of the error that all programs of a task share
constexpr double kNoise = 0.05;            // deviation of a measurement's logarithm
constexpr double kLengths[] = {0.5, 1, 2, 4};
constexpr double kTypicalLength = 1.5;
constexpr double kAmplitudes[] = {0.375, 0.75, 1.5, 2.5};  // relative to sigma
constexpr double kLogPrior = 0.7;  // deviation of the logarithms of length and amplitude
constexpr double kLeastVariance = 1e-9;
constexpr float kConstantColumn = 1e-6F;  // deviation of a column that says nothing

double matern(double squared_distance, double length) {
  const double r = std::sqrt(5 * squared_distance) / length;
  return (1 + r + r * r / 3) * std::exp(-r);
}

double log_prior(double ratio) {
  const double z = std::log(ratio) / kLogPrior;
  return -0.5 * z * z;
}

// Adds up f(0), ..., f(n - 1). A single sum would wait for each addition, so there are four.
template <class Number, class F>
Number sum_of(size_t n, const F& f) {
  Number a = 0, b = 0, c = 0, d = 0;
  size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    a += f(k);
    b += f(k + 1);
    c += f(k + 2);
    d += f(k + 3);
  }
  for (; k < n; ++k) a += f(k);
  return (a + b) + (c + d);
}

// Returns the logarithm of the probability density of the errors, without constants. correlations: n x n, of
// which only the lower triangle is read.
double log_evidence(const std::vector<double>& correlations, std::span<const double> errors,
                    double amplitude) {
  const size_t n = errors.size();
  std::vector<double> factor(n * n, 0), whitened(n);
  double evidence = 0;
  for (size_t i = 0; i < n; ++i) {
    double error = errors[i];
    for (size_t j = 0; j <= i; ++j) {
      const double *row = &factor[i * n], *column = &factor[j * n];
      const double sum = amplitude * amplitude * correlations[i * n + j] + kConstantVariance -
                         sum_of<double>(j, [&](size_t k) { return row[k] * column[k]; });
      if (i == j) {
        factor[i * n + i] = std::sqrt(std::max(sum + kNoise * kNoise, kLeastVariance));
      } else {
        factor[i * n + j] = sum / factor[j * n + j];
        error -= factor[i * n + j] * whitened[j];
      }
    }
    whitened[i] = error / factor[i * n + i];
    evidence -= 0.5 * whitened[i] * whitened[i] + std::log(factor[i * n + i]);
  }
  return evidence;
}

}  // namespace

ProgramPoints::ProgramPoints(const std::vector<std::vector<float>>& features) : size_(features.size()) {
  if (features.empty()) return;
  std::vector<size_t> columns;
  std::vector<float> means, deviations;
  for (size_t c = 0; c < features.front().size(); ++c) {
    double sum = 0, squares = 0;
    for (const auto& row : features) sum += static_cast<double>(row[c]);
    const double mean = sum / size_;
    for (const auto& row : features) {
      const double difference = static_cast<double>(row[c]) - mean;
      squares += difference * difference;
    }
    const auto deviation = static_cast<float>(std::sqrt(squares / size_));
    if (!(deviation > kConstantColumn) || !std::isfinite(deviation)) continue;
    columns.push_back(c);
    means.push_back(static_cast<float>(mean));
    deviations.push_back(deviation);
  }
  width_ = columns.size();
  const float scale = 1 / std::sqrt(static_cast<float>(std::max<size_t>(width_, 1)));
  values_.reserve(size_ * width_);
  for (const auto& row : features)
    for (size_t k = 0; k < width_; ++k)
      values_.push_back(scale * (row[columns[k]] - means[k]) / deviations[k]);
}

double ProgramPoints::squared_distance(size_t i, size_t j) const {
  const auto a = row(i), b = row(j);
  return static_cast<double>(sum_of<float>(width_, [&](size_t k) { return (a[k] - b[k]) * (a[k] - b[k]); }));
}

ErrorProcess::ErrorProcess(const ProgramPoints& points, std::span<const size_t> measured,
                           std::span<const double> errors, double sigma)
    : points_(points) {
  TS_CHECK(!errors.empty() && errors.size() == measured.size(), "each measured program has one error");
  const size_t n = errors.size();
  offset_ = std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(n);
  std::vector<double> centered(errors.begin(), errors.end()), distances(n * n, 0), correlations(n * n);
  for (double& error : centered) error -= offset_;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j) distances[i * n + j] = points.squared_distance(measured[i], measured[j]);
  double best = -std::numeric_limits<double>::infinity();
  for (const double length : kLengths) {
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j <= i; ++j) correlations[i * n + j] = matern(distances[i * n + j], length);
    for (const double amplitude : kAmplitudes) {
      const double evidence = log_evidence(correlations, centered, amplitude * sigma) +
                              log_prior(length / kTypicalLength) + log_prior(amplitude);
      if (evidence <= best) continue;
      best = evidence;
      length_ = length;
      amplitude_ = amplitude * sigma;
    }
  }
  mean_.assign(points.size(), 0);
  variance_.assign(points.size(), amplitude_ * amplitude_ + kConstantVariance);
  factor_.assign(points.size(), {});
  for (std::vector<double>& row : factor_) row.reserve(n);
  for (size_t i = 0; i < n; ++i) add(measured[i], centered[i]);
}

void ErrorProcess::add(size_t point, double error) {
  const double deviation = std::sqrt(std::max(variance_[point], 0.0) + kNoise * kNoise);
  const double whitened = (error - mean_[point]) / deviation;
  const std::vector<double> own = factor_[point];
  for (size_t x = 0; x < points_.size(); ++x) {
    std::vector<double>& row = factor_[x];
    const double covariance = amplitude_ * amplitude_ * matern(points_.squared_distance(point, x), length_) +
                              kConstantVariance -
                              sum_of<double>(own.size(), [&](size_t k) { return own[k] * row[k]; });
    row.push_back(covariance / deviation);
    mean_[x] += whitened * row.back();
    variance_[x] = std::max(variance_[x] - row.back() * row.back(), kLeastVariance);
  }
}

}  // namespace tensorsmith::learn
