// How the iterations of a parallel loop are handed out: by runtime::KernelPool, and by estimates of what threads gain.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tensorsmith {

struct LoopRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// Part `index` of [0, total) cut into `count` parts whose sizes differ by at most one.
inline LoopRange loop_part(int64_t total, int64_t count, int64_t index) {
  const int64_t base = total / count, rest = total % count;
  const int64_t begin = base * index + std::min(index, rest);
  return {begin, begin + base + (index < rest ? 1 : 0)};
}

// Pieces that a thread's range is cut into: small enough that a thread which starts late or is interrupted leaves work to
// the others, few enough that taking them costs nothing.
inline constexpr int64_t kLoopPieces = 4;
inline int64_t loop_pieces(LoopRange range) { return std::min(range.size(), kLoopPieces); }

// Piece `index` of a range, of loop_pieces(range).
inline LoopRange loop_piece(LoopRange range, int64_t index) {
  const LoopRange piece = loop_part(range.size(), loop_pieces(range), index);
  return {range.begin + piece.begin, range.begin + piece.end};
}

}  // namespace tensorsmith
