// What threads gain.
#pragma once

namespace tensorsmith::space {

// The iterations of a parallel loop over tiles of some axes. The last tile of an axis may be shorter: a loop over
// 128 rows by 126 has two iterations, and no gain of a second thread.
class ParallelLoop {
 public:
  // tile <= extent. short_tail: the last tile takes the time of what it has, not of a whole tile.
  void add_axis(double extent, double tile, bool short_tail);

  double iterations() const { return iterations_; }
  // The work over the largest share of a thread; iterations go to whichever thread is free.
  double speedup(int threads) const;

 private:
  double iterations_ = 1, whole_ = 1;  // whole_: those of whole tiles
  double work_ = 1;                    // of all, in whole tiles
  double longest_tail_ = 0;            // the work of the longest shorter tile
};

}  // namespace tensorsmith::space
