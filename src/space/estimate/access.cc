#include "space/estimate/access.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tensorsmith::space {

double read_cycles(const EstimateMachine& m, int64_t stride, double length, double lanes) {
  const double vectors = std::ceil(length / lanes);
  const auto distance = std::abs(stride);
  if (distance <= 1) return vectors;
  // As many vectors as the stride are loaded and shuffled together.
  if (distance <= 4) return vectors * (2 * distance + 1);
  return length * m.fitted().strided_element;
}

double tail_factor(const EstimateMachine& m, int64_t extent, int64_t tile, bool vectorized,
                   sched::TailPolicy tail, double masked) {
  if (tail == sched::TailPolicy::kPeel || tile < 1 || extent % tile == 0) return 1;
  const double factor = vectorized ? m.fitted().tail_vector : m.fitted().tail_scalar;
  return m.masked_memory ? std::min(factor, masked) : factor;
}

double stream_rate(const EstimateMachine& m, double bytes, double usable) {
  if (bytes <= usable * m.l2_bytes) return m.rates.l2_bytes_per_cycle;
  return bytes <= usable * m.l3_bytes_per_core() ? m.rates.l3_bytes_per_cycle : m.memory_bytes_per_cycle();
}

double stream_rate(const EstimateMachine& m, double bytes) {
  return stream_rate(m, bytes, m.fitted().usable);
}

double stream_rate_beyond_l2(const EstimateMachine& m, double bytes) {
  return bytes <= m.fitted().usable * m.l3_bytes_per_core() ? m.rates.l3_bytes_per_cycle
                                                            : m.memory_bytes_per_cycle();
}

double written_cycles(const EstimateMachine& m, double bytes, double all_bytes) {
  return 2 * bytes / stream_rate(m, all_bytes);
}

namespace {

// A separate loop forks all threads. The cycles are those of all threads together, since estimates
// divide them by the speed-up of the threads.
double start_cycles(const EstimateMachine& m, int threads) {
  return threads > 1 ? m.fork_cycles() * threads : 0;
}

}  // namespace

double pad_cycles(const EstimateMachine& m, double points, int element_bytes, int threads) {
  return points / m.lanes(element_bytes) * m.fitted().padded_vector +
         2 * points * element_bytes / m.rates.l3_bytes_per_cycle + start_cycles(m, threads);
}

double copy_cycles(const EstimateMachine& m, double points, int element_bytes, bool vectors, int threads) {
  const double moved =
      vectors ? m.fitted().copied_vector / m.lanes(element_bytes) : m.fitted().copied_element;
  const double bytes = 2 * points * element_bytes;
  return points * moved + bytes / stream_rate(m, bytes, m.fitted().usable_once) + start_cycles(m, threads);
}

}  // namespace tensorsmith::space
