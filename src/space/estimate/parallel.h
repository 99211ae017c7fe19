// Speed-up of parallel loops by threads.
#pragma once

#include <array>
#include <cstddef>

#include "space/estimate/parts.h"

namespace tensorsmith::space {

// The iterations of a parallel loop over tiles of some axes, the first axis outermost. The last
// tile of an axis may be shorter. Example: a loop over 128 rows in tiles of 126 has two iterations,
// but a second thread gains almost nothing.
class ParallelLoop {
 public:
  // Requires tile <= extent. `short_tail`: the last tile takes time in proportion to its length,
  // not that of a whole tile.
  void add_axis(double extent, double tile, bool short_tail);

  double iterations() const { return iterations_; }
  // Returns the total work divided by the largest share of a thread, with the iterations
  // distributed as in runtime::KernelPool.
  double speedup(int threads) const;

 private:
  struct Axis {
    double tiles = 1, tail = 1;  // `tail`: size of the last tile relative to a whole one
  };
  double largest_share(int threads) const;
  double shares_by_iteration(int iterations, int threads) const;

  double iterations_ = 1, whole_ = 1;  // `whole_`: number of iterations that are whole tiles
  double work_ = 1;                    // of all iterations, in units of whole tiles
  double longest_tail_ = 0;            // work of the largest tile that is not whole
  std::array<Axis, 8> axes_;
  size_t num_axes_ = 0;  // axes beyond the array only count in the totals above
};

// Fills the quantities of a plan's parallel loop.
void set_loop_parts(const ParallelLoop& loop, int threads, EstimateParts& parts);

}  // namespace tensorsmith::space
