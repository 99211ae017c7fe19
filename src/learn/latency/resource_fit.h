// How much of each resource's time a program takes: nonnegative factors of a sum.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tensorsmith::learn {

inline constexpr double kFactorRidge = 0.01;

// Factors x >= 0 of the columns that bring sum_j x_j rows[i][j] near 1 for every row i, in the weighted mean
// of sqrt(e^2 + 0.05^2), e = sum - 1 (a mean absolute error with a rounded corner; with rows of
// resource seconds / measured seconds it is the relative error). A ridge of 0.01 on the columns scaled to
// unit root mean square keeps columns that mean the same from fighting. Iteratively reweighted least squares
// (Holland and Welsch 1977), each solved by coordinate descent.
// rows: weights.size() x width, row-major, finite and not negative; weights: positive. Empty without rows.
// The ridge pulls towards prior (width factors), or towards 0 where that is empty.
std::vector<double> fit_factors(std::span<const double> rows, std::span<const double> weights, int width,
                                std::span<const double> prior = {}, double ridge = kFactorRidge);

// What the prior's factors are to be multiplied by for a device of which these rows are: 1 / the median of
// sum_j prior_j rows[i][j]; 1 where the prior knows none of the resources.
double factor_scale(std::span<const double> rows, std::span<const double> prior);

}  // namespace tensorsmith::learn
