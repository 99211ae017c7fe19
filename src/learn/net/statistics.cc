#include "learn/net/statistics.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::learn::net {

ColumnStatistics::ColumnStatistics(int width) : columns_(width) {}

void ColumnStatistics::add(std::span<const float> rows) {
  if (columns_.empty()) return;
  for (size_t at = 0; at + columns_.size() <= rows.size(); at += columns_.size()) {
    ++count_;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const double x = rows[at + c];
      Column& column = columns_[c];
      if (count_ == 1) column = {0, 0, x, x};
      // Welford's algorithm.
      const double delta = x - column.mean;
      column.mean += delta / count_;
      column.squares += delta * (x - column.mean);
      column.low = std::min(column.low, x);
      column.high = std::max(column.high, x);
    }
  }
}

ColumnScaling ColumnStatistics::scaling(ScalingKind kind) const {
  ColumnScaling out;
  for (const Column& column : columns_) {
    double shift = 0, spread = 0;
    switch (kind) {
      case ScalingKind::kMax:
        spread = std::max(std::abs(column.low), std::abs(column.high));
        break;
      case ScalingKind::kMinMax:
        shift = column.low;
        spread = column.high - column.low;
        break;
      case ScalingKind::kStandard:
        shift = column.mean;
        spread = count_ > 0 ? std::sqrt(column.squares / count_) : 0;
        break;
    }
    if (column.high == column.low) spread = 0;
    out.shift.push_back(static_cast<float>(shift));
    out.scale.push_back(spread > 1e-6 ? static_cast<float>(1 / spread) : 0.0F);
  }
  return out;
}

namespace {

// Box-Cox transform of exp(x): (exp(lambda x) - 1) / lambda.
double power(double x, double lambda) {
  return std::abs(lambda) < 1e-9 ? x : std::expm1(lambda * x) / lambda;
}

std::pair<double, double> mean_and_deviation(std::span<const double> values, auto&& of) {
  double mean = 0, squares = 0, n = 0;
  for (const double v : values) {
    const double x = of(v), delta = x - mean;
    mean += delta / ++n;
    squares += delta * (x - mean);
  }
  return {mean, n > 0 ? std::sqrt(squares / n) : 0};
}

}  // namespace

LabelTransform LabelTransform::fit(const std::string& kind, std::span<const double> r) {
  LabelTransform out;
  if (kind == "none") return out;
  out.center = mean_and_deviation(r, [](double x) { return x; }).first;
  if (kind == "box-cox") {
    // For labels divided by their geometric mean, the logarithm of the profile likelihood is -n/2
    // log(variance of the transformed labels). The golden-section search covers a range without
    // flat ends.
    const auto spread = [&](double lambda) {
      return mean_and_deviation(r, [&](double x) { return power(x - out.center, lambda); }).second;
    };
    const double golden = (std::sqrt(5.0) - 1) / 2;
    double low = -1, high = 1;
    while (high - low > 1e-3) {
      const double a = high - golden * (high - low), b = low + golden * (high - low);
      (spread(a) < spread(b) ? high : low) = spread(a) < spread(b) ? b : a;
    }
    out.lambda = (low + high) / 2;
  }
  const auto [mean, deviation] =
      mean_and_deviation(r, [&](double x) { return power(x - out.center, out.lambda); });
  out.mean = mean;
  out.deviation = deviation > 1e-6 ? deviation : 1;  // in case all labels are equal
  return out;
}

double LabelTransform::encode(double r) const { return (power(r - center, lambda) - mean) / deviation; }

double LabelTransform::decode(double z) const {
  const double value = z * deviation + mean;
  if (std::abs(lambda) < 1e-9) return center + value;
  return center + std::log(std::max(1 + lambda * value, kLeastPower)) / lambda;
}

}  // namespace tensorsmith::learn::net
