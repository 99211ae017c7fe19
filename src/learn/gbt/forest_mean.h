// Mean of the predictions of several forests for the same rows, and their spread.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace tensorsmith::learn {

class ForestMean {
 public:
  explicit ForestMean(size_t rows) : means_(rows, 0.0), squares_(rows, 0.0) {}
  // Adds the values of a forest, one for each row. share: its weight in the mean.
  void add(std::span<const float> values, double share) {
    shares_ += share;
    for (size_t i = 0; i < values.size(); ++i) {
      const double value{values[i]};
      means_[i] += share * value;
      squares_[i] += share * value * value;
    }
  }
  // Both do nothing if `out` is empty.
  void add_mean_to(std::span<double> out, double scale) const {
    for (size_t i = 0; i < out.size(); ++i) out[i] += scale * means_[i];
  }
  void set_spread(std::span<double> out, double scale) const {
    for (size_t i = 0; i < out.size() && shares_ > 0; ++i) {
      const double mean = means_[i] / shares_;
      out[i] = scale * std::sqrt(std::max(squares_[i] / shares_ - mean * mean, 0.0));
    }
  }

 private:
  std::vector<double> means_, squares_;
  double shares_ = 0;
};

}  // namespace tensorsmith::learn
