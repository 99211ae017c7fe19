#include "space/estimate/parallel.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::space {

void ParallelLoop::add_axis(double extent, double tile, bool short_tail) {
  const double tiles = std::ceil(extent / tile);
  iterations_ *= tiles;
  whole_ *= short_tail ? std::floor(extent / tile) : tiles;
  work_ *= short_tail ? extent / tile : tiles;
  if (short_tail) longest_tail_ = std::max(longest_tail_, extent / tile - std::floor(extent / tile));
}

double ParallelLoop::speedup(int threads) const {
  // Where all threads have equally many whole tiles, one of them takes the longest of the others besides.
  const double rounds = std::ceil(whole_ / threads);
  const double largest = rounds * threads == whole_ ? rounds + longest_tail_ : rounds;
  return work_ / std::max(work_ / threads, largest);
}

}  // namespace tensorsmith::space
