#include "base/statistics.h"

#include <algorithm>
#include <cstddef>

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

}  // namespace tensorsmith
