// Fits nonnegative factors that turn the times of a program's resources into a sum that estimates
// its time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tensorsmith::learn {

inline constexpr double kFactorRidge = 0.01;

// Fits factors x >= 0 of the columns so that sum_j x_j rows[i][j] is close to 1 for every row i.
// Minimizes the weighted mean of sqrt(e^2 + 0.05^2), e = sum - 1: an absolute error with a rounded
// corner. If the rows are resource seconds / measured seconds, e is the relative error. A ridge (by
// default 0.01) on the columns, scaled to unit root mean square, keeps the factors of nearly
// collinear columns stable. Solved by iteratively reweighted least squares (Holland and Welsch
// 1977), each step by coordinate descent. rows: weights.size() x width, row-major, finite and not
// negative. weights: positive. Returns an empty vector if there are no rows. The ridge pulls
// towards `prior` (width factors), or towards 0 if it is empty.
std::vector<double> fit_factors(std::span<const double> rows, std::span<const double> weights, size_t width,
                                std::span<const double> prior = {}, double ridge = kFactorRidge);

// Returns the scale that adapts the prior's factors to the device that the rows come from: 1 /
// median of sum_j prior_j rows[i][j], or 1 if the prior covers none of the resources.
double factor_scale(std::span<const double> rows, std::span<const double> prior);

}  // namespace tensorsmith::learn
