// Seeded random numbers: xoshiro256++ (Blackman and Vigna, 2019), seeded through SplitMix64.
// The streams are guaranteed: a seed gives the same integers and the same uniform() on any machine.
// normal() also depends on the C library's log() and cos(), which may differ in the last bits.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/result.h"

namespace tensorsmith {

__extension__ using uint128_t = unsigned __int128;

class Rng {
 public:
  explicit Rng(uint64_t seed) {
    for (uint64_t i = 0; i < 4; ++i) state_[i] = mix64(seed + i * 0x9e3779b97f4a7c15ULL);
  }

  uint64_t next() {
    const uint64_t result = rotl(state_[0] + state_[3], 23) + state_[0];
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, n); n > 0.
  uint64_t below(uint64_t n) {
    TS_CHECK(n > 0, "Rng::below(0)");
    return (static_cast<uint128_t>(next()) * n) >> 64;
  }
  // Uniform in [low, high], both included.
  int64_t uniform_int(int64_t low, int64_t high) {
    TS_CHECK(low <= high, "Rng::uniform_int: empty range");
    const auto first = static_cast<uint64_t>(low);
    const uint64_t steps = static_cast<uint64_t>(high) - first;  // wraps to the right number
    return static_cast<int64_t>(first + (steps == UINT64_MAX ? next() : below(steps + 1)));
  }
  // Uniform in [0, 1).
  double uniform() { return (next() >> 11) * 0x1.0p-53; }
  // Standard normal (Box-Muller, one of the pair).
  double normal() {
    const double u = 1.0 - uniform();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * uniform());
  }
  bool bernoulli(double p) { return uniform() < p; }
  // Shuffles the items (Fisher and Yates); every order is equally likely. `items` is a vector, span
  // or array.
  template <class Items>
  void shuffle(Items&& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }
  // Returns an index drawn with probability proportional to the weights (all >= 0, sum > 0). Never
  // returns an index of weight 0.
  size_t weighted(std::span<const double> weights) {
    double total = 0;
    for (double w : weights) total += w;
    TS_CHECK(total > 0, "Rng::weighted: no weight");
    double x = uniform() * total;
    size_t last = 0;  // the result if rounding errors make the weights end before x
    for (size_t i = 0; i < weights.size(); ++i) {
      if (x < weights[i]) return i;
      x -= weights[i];
      if (weights[i] > 0) last = i;
    }
    return last;
  }
  // Returns an independent stream for a worker or a task.
  Rng fork() { return Rng(next()); }

 private:
  static constexpr uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::array<uint64_t, 4> state_{};
};

}  // namespace tensorsmith
