#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "base/result.h"

namespace tensorsmith {

double quantile(std::vector<double> values, double q) {
  TS_CHECK(!values.empty(), "a quantile needs at least one value");
  const auto at = values.begin() + (q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double median(std::vector<double> values) {
  TS_CHECK(!values.empty(), "a median needs at least one value");
  const auto middle = values.begin() + (values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double sample_deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / values.size();
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (values.size() - 1));
}

}  // namespace tensorsmith
