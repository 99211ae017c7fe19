// What threads gain.
#pragma once

#include <array>
#include <cstddef>

namespace tensorsmith::space {

// The iterations of a parallel loop over tiles of some axes, the first axis outermost. The last tile of an axis may be
// shorter: a loop over 128 rows by 126 has two iterations, and no gain of a second thread.
class ParallelLoop {
 public:
  // tile <= extent. short_tail: the last tile takes the time of what it has, not of a whole tile.
  void add_axis(double extent, double tile, bool short_tail);

  double iterations() const { return iterations_; }
  // The work over the largest share of a thread, as runtime::KernelPool hands iterations out.
  double speedup(int threads) const;

 private:
  struct Axis {
    double tiles = 1, tail = 1;  // tail: the last tile over a whole one
  };
  double largest_share(int threads) const;
  double shares_by_iteration(int iterations, int threads) const;

  double iterations_ = 1, whole_ = 1;  // whole_: those of whole tiles
  double work_ = 1;                    // of all, in whole tiles
  double longest_tail_ = 0;            // the work of the longest shorter tile
  std::array<Axis, 8> axes_;
  size_t num_axes_ = 0;  // those beyond the array are counted above only
};

}  // namespace tensorsmith::space
