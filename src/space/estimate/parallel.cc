#include "space/estimate/parallel.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::space {

void ParallelLoop::add_axis(double extent, double tile, bool short_tail) {
  const double tiles = std::ceil(extent / tile);
  iterations_ *= tiles;
  whole_ *= short_tail ? std::floor(extent / tile) : tiles;
  work_ *= short_tail ? extent / tile : tiles;
}

double ParallelLoop::speedup(int threads) const {
  return work_ / std::max(work_ / threads, std::ceil(whole_ / threads));
}

}  // namespace tensorsmith::space
