#include "space/estimate/access.h"

#include <cmath>
#include <cstdlib>

namespace tensorsmith::space {

double read_cycles(int64_t stride, double length, double lanes) {
  const double vectors = std::ceil(length / lanes);
  const auto distance = static_cast<double>(std::abs(stride));
  if (distance <= 1) return vectors;
  if (distance <= 4) return vectors * (2 * distance + 1);
  return length * 1.5;
}

double tail_factor(int64_t extent, int64_t tile, bool vectorized, sched::TailPolicy tail) {
  if (tail == sched::TailPolicy::kPeel || tile < 1 || extent % tile == 0) return 1;
  return vectorized ? 4 : 1.5;
}

}  // namespace tensorsmith::space
