// The inner lengths of one split axis: all tuples (l_1 .. l_parts), outer to inner, of positive
// lengths whose product is at most the extent and whose innermost length is at most a cap. Lengths
// need not divide the extent: a tail is predicated or peeled. If tiles must not straddle a block of
// the axis (a group of channels), the extent is that of the block, and every product of inner
// lengths divides it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"

namespace tensorsmith::space {

class TileLengths {
 public:
  // Requires extent >= 1 and parts >= 1; max_innermost 0 = no cap. `divide`: l_parts, l_(parts-1) *
  // l_parts, ... divide the extent.
  TileLengths(int64_t extent, size_t parts, int64_t max_innermost, bool divide = false);

  int64_t extent() const { return extent_; }
  // Returns the number of tuples, exact below 2^53.
  double count() const;
  bool contains(std::span<const int64_t> lengths) const;
  // Advances to the lexicographic successor in place. After the last tuple, returns false and sets
  // the first one (all ones).
  bool advance(std::span<int64_t> lengths) const;
  // Draws a tuple. Divisors of the extent, and multiples of `unit` for the innermost length, are
  // preferred, but any tuple is possible.
  void sample(Rng& rng, int64_t unit, std::span<int64_t> lengths) const;
  // Changes one or two lengths by a small or a large move. May leave the tuple unchanged.
  void mutate(Rng& rng, int64_t unit, std::span<int64_t> lengths) const;
  // Returns the tuples one small move away: a length one step up or down (by 1, by `unit` for the
  // innermost one, to the next divisor of the extent, to twice or half), or a factor of 2 moved
  // from one length to another. Each is listed once, without the tuple itself.
  std::vector<std::vector<int64_t>> neighbours(int64_t unit, std::span<const int64_t> lengths) const;
  // Finds the tuple of this axis that is nearest to one of another axis: inner lengths are kept as
  // far as they fit. `lengths` may be `source` itself.
  void fit(std::span<const int64_t> source, std::span<int64_t> lengths) const;

 private:
  int64_t cap(size_t part) const {
    return part + 1 == parts_ && max_innermost_ > 0 ? max_innermost_ : extent_;
  }
  // Draws a length in [1, limit] for one part.
  int64_t draw(Rng& rng, int64_t unit, int64_t limit) const;
  // Returns the largest length for `part` that is at most `wanted` and fits `rest`, the extent
  // divided by the product of the inner lengths.
  int64_t fitting(size_t part, int64_t wanted, int64_t rest) const;

  int64_t extent_;
  size_t parts_;
  int64_t max_innermost_;
  bool divide_;
  std::vector<int64_t> divisors_;  // of the extent, ascending
};

}  // namespace tensorsmith::space
