#include "space/estimate/parallel.h"

#include <algorithm>
#include <cmath>

#include "base/loop_ranges.h"

namespace tensorsmith::space {

namespace {

// Most threads and iterations for which the distribution is simulated; every iteration is then a
// piece by itself. In longer loops, a shorter last tile hardly matters.
constexpr int kMostThreads = 2 * 8, kMostIterations = kLoopPieces * kMostThreads;

}  // namespace

void ParallelLoop::add_axis(double extent, double tile, bool short_tail) {
  const double tiles = std::ceil(extent / tile);
  iterations_ *= tiles;
  whole_ *= short_tail ? std::floor(extent / tile) : tiles;
  work_ *= short_tail ? extent / tile : tiles;
  const double rest = extent / tile - std::floor(extent / tile);
  if (short_tail) longest_tail_ = std::max(longest_tail_, rest);
  if (num_axes_ < axes_.size()) axes_[num_axes_] = {tiles, short_tail && rest > 0 ? rest : 1};
  ++num_axes_;
}

// Simulates the pool's ranges and pieces: each thread takes the pieces of its own range in order,
// then those that are left in the following ranges. Returns the largest share of a thread.
double ParallelLoop::shares_by_iteration(int iterations, int threads) const {
  std::array<double, kMostIterations + 1> until;  // the work of the iterations before
  until[0] = 0;
  for (int i = 0; i < iterations; ++i) {
    double work = 1;
    int rest = i;
    for (size_t a = num_axes_; a-- > 0;) {
      const int tiles = static_cast<int>(axes_[a].tiles);
      if (rest % tiles == tiles - 1) work *= axes_[a].tail;
      rest /= tiles;
    }
    until[static_cast<size_t>(i) + 1] = until[static_cast<size_t>(i)] + work;
  }
  const int ranges = std::min(iterations, threads);
  std::array<int, kMostThreads> taken{};  // pieces of each range
  std::array<double, kMostThreads> clock{};
  for (;;) {
    // The thread that is free first takes the next piece.
    const int thread = std::min_element(clock.begin(), clock.begin() + threads) - clock.begin();
    bool found = false;
    for (int k = 0; k < threads && !found; ++k) {
      const int range = (thread + k) % threads;
      if (range >= ranges) continue;
      const LoopRange own = loop_part(iterations, ranges, range);
      int& next = taken[range];
      if (next == loop_pieces(own)) continue;
      const LoopRange piece = loop_piece(own, next);
      clock[thread] += until[piece.end] - until[piece.begin];
      ++next;
      found = true;
    }
    if (!found) return *std::max_element(clock.begin(), clock.begin() + threads);
  }
}

double ParallelLoop::largest_share(int threads) const {
  if (longest_tail_ > 0 && num_axes_ <= axes_.size() && iterations_ <= kMostIterations &&
      threads <= kMostThreads)
    return shares_by_iteration(static_cast<int>(iterations_), threads);
  // If the whole tiles divide evenly among the threads, one thread additionally takes the largest
  // tile that is not whole.
  const double rounds = std::ceil(whole_ / threads);
  return rounds * threads == whole_ ? rounds + longest_tail_ : rounds;
}

double ParallelLoop::speedup(int threads) const {
  return work_ / std::max(work_ / threads, largest_share(threads));
}

void set_loop_parts(const ParallelLoop& loop, int threads, EstimateParts& parts) {
  parts.iterations = std::log2(std::max(1.0, loop.iterations()));
  parts.speedup = loop.speedup(threads) / threads;
  parts.forks = loop.iterations() > 1 ? 1 : 0;
}

}  // namespace tensorsmith::space
