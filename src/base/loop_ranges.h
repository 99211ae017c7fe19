// Distribution of a parallel loop's iterations, used by runtime::KernelPool and by estimates of
// parallel speedup.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tensorsmith {

struct LoopRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// Returns part `index` of [0, total) divided into `count` parts whose sizes differ by at most one.
inline LoopRange loop_part(int64_t total, int64_t count, int64_t index) {
  const int64_t base = total / count, rest = total % count;
  const int64_t begin = base * index + std::min(index, rest);
  return {begin, begin + base + (index < rest ? 1 : 0)};
}

// Number of pieces of a thread's range: enough that other threads can take over work from a thread
// that starts late or is interrupted, but so few that claiming them costs nothing.
inline constexpr int64_t kLoopPieces = 4;
inline int64_t loop_pieces(LoopRange range) { return std::min(range.size(), kLoopPieces); }

// Returns piece `index` of the loop_pieces(range) pieces of a range.
inline LoopRange loop_piece(LoopRange range, int64_t index) {
  const LoopRange piece = loop_part(range.size(), loop_pieces(range), index);
  return {range.begin + piece.begin, range.begin + piece.end};
}

}  // namespace tensorsmith
