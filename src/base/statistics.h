// Order statistics of samples.
#pragma once

#include <vector>

namespace tensorsmith {

// The middle value; the mean of the two in the middle of an even number. values: not empty.
double median(std::vector<double> values);
// The value with the number floor(q * (n - 1)) in ascending order. values: not empty; q in [0, 1].
double quantile(std::vector<double> values, double q);

}  // namespace tensorsmith
