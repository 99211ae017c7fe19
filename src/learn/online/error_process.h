// A Gaussian process over the errors of a cost model within one task: the errors at measured programs say
// what error to expect at programs with similar features, and how uncertain that is.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tensorsmith::learn {

// Rows of numbers, one for each program, in which a distance of about 1 is typical.
class ProgramPoints {
 public:
  // features: one row for each program, all of the same length. Columns are shifted and scaled to mean 0
  // and deviation 1, and then divided by the square root of their number. Constant columns are left out.
  explicit ProgramPoints(const std::vector<std::vector<float>>& features);

  size_t size() const { return size_; }
  std::span<const float> row(size_t i) const { return {values_.data() + i * width_, width_}; }
  double squared_distance(size_t i, size_t j) const;

 private:
  size_t size_ = 0, width_ = 0;
  std::vector<float> values_;
};

// The error of a belief is log(measured seconds / believed seconds). A priori it is a constant of the task
// plus a Matern 5/2 process with variance sigma^2; the length scale and the amplitude are the most probable
// ones on a grid (Rasmussen and Williams, Gaussian Processes for Machine Learning, chapters 2, 4 and 5).
class ErrorProcess {
 public:
  // measured: indices of points; errors: theirs. sigma: expected deviation of errors within the task. All
  // must be finite; there must be at least one error. points: must outlive this object.
  ErrorProcess(const ProgramPoints& points, std::span<const size_t> measured, std::span<const double> errors,
               double sigma);

  // Expected error of a point and its variance.
  double mean(size_t point) const { return offset_ + mean_[point]; }
  double variance(size_t point) const { return variance_[point]; }
  // Takes the point as measured with the expected error: means stay, variances of similar points shrink.
  void assume(size_t point) { add(point, mean_[point]); }

 private:
  void add(size_t point, double error);

  const ProgramPoints& points_;
  double length_ = 1, amplitude_ = 1;
  double offset_ = 0;
  std::vector<double> mean_, variance_;  // by point; means without offset_
  // By point: its row of the covariance's Cholesky factor, with a column for each added point.
  std::vector<std::vector<double>> factor_;
};

}  // namespace tensorsmith::learn
