// A loss on logarithms whose minimum is that of the mean absolute percentage error.
#pragma once

#include <algorithm>
#include <cmath>

namespace tensorsmith::learn {

// Of e = log(predicted / measured). |exp(e) - 1| has the slope sign(e) exp(e): too small far below and too
// large far above for boosting to move at all or to stay. So the slope's size is kept within [0.25, 3], and
// the corner at 0 is rounded over 0.1. The curvature is the slope's size over the distance, which makes a
// Newton step end at the corner.
struct RelativeLoss {
  double gradient = 0, hessian = 0;

  explicit RelativeLoss(double e) {
    const double slope = std::clamp(std::exp(std::clamp(e, -5.0, 5.0)), 0.25, 3.0);
    const double distance = std::sqrt(e * e + 0.01);
    gradient = slope * e / distance;
    hessian = slope / std::max(distance, 0.3);
  }
};

}  // namespace tensorsmith::learn
