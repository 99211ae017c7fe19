// Order statistics and the spread of samples.
#pragma once

#include <vector>

namespace tensorsmith {

// Returns the median; for an even number of values, the mean of the middle two. `values` must not
// be empty.
double median(std::vector<double> values);
// Returns the value with index floor(q * (n - 1)) in ascending order. `values` must not be empty; q
// is in [0, 1].
double quantile(std::vector<double> values, double q);
// Returns the sample standard deviation (n - 1 in the denominator); 0 for fewer than two values.
double sample_deviation(const std::vector<double>& values);

}  // namespace tensorsmith
