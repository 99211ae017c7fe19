// How much of each resource's time a program takes: nonnegative factors of a sum.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tensorsmith::learn {

// Factors x >= 0 of the columns that bring sum_j x_j rows[i][j] near 1 for every row i, in the weighted mean
// of sqrt(e^2 + 0.05^2), e = sum - 1 (a mean absolute error with a rounded corner; with rows of
// resource seconds / measured seconds it is the relative error). A ridge of 0.01 on the columns scaled to
// unit root mean square keeps columns that mean the same from fighting. Iteratively reweighted least squares
// (Holland and Welsch 1977), each solved by coordinate descent.
// rows: weights.size() x width, row-major, finite and not negative; weights: positive. Empty without rows.
std::vector<double> fit_factors(std::span<const double> rows, std::span<const double> weights, int width);

}  // namespace tensorsmith::learn
