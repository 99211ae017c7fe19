// A loss on logarithms with the minimum of the mean absolute percentage error.
#pragma once

#include <algorithm>
#include <cmath>

namespace tensorsmith::learn {

// Loss for e = log(predicted / measured). |exp(e) - 1| has the slope sign(e) exp(e), which is too
// small for e << 0, where boosting would hardly move, and too large for e >> 0, where it would
// overshoot. So the absolute slope is limited to [0.25, 3], and the corner at 0 is rounded over
// 0.1. The curvature is absolute slope / distance, so that a Newton step ends at the corner.
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
