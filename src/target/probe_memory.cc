// Measures how fast this machine reads memory and how long its caches keep data; the operating
// system reports neither.
#include "target/probe_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "base/statistics.h"
#include "target/probe_time.h"
#include "target/target.h"

namespace tensorsmith::target {
namespace {

// The buffer is several times as large as the caches, within what a small machine can spare.
constexpr int64_t kCacheFactor = 4;
constexpr int64_t kLeastBytes = int64_t{64} << 20;
constexpr int64_t kMostBytes = int64_t{1} << 30;
// Other programs can only make a pass slower, so there are enough passes for some to be hardly
// disturbed.
constexpr int kLeastPasses = 6;
constexpr double kMemorySeconds = 0.4;

constexpr int64_t kMostRetained = int64_t{4} << 20;  // bytes, more than the private caches of a core
constexpr int kRetentionRounds = 25;                 // many, since the load of other programs varies

// Sums in four accumulators, so that the additions do not depend on each other.
uint64_t sum(const uint64_t* data, size_t count) {
  uint64_t sums[4] = {};
  for (size_t i = 0; i + 4 <= count; i += 4)
    for (size_t k = 0; k < 4; ++k) sums[k] += data[i + k];
  return sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace

double measure_memory_bandwidth(const Device& device) {
  const int threads = std::max(device.cpu().cores, 1);
  const int64_t caches = device.l3_bytes + device.l2_bytes * threads;
  const int64_t bytes = std::clamp(kCacheFactor * caches, kLeastBytes, kMostBytes);
  std::vector<uint64_t> data(bytes / sizeof(uint64_t), 1);
  const size_t part = data.size() / threads;
  std::vector<uint64_t> sums(threads);
  double best = 0;
  const double begin = seconds_now();
  uint64_t passes = 0;
  for (; passes < kLeastPasses || seconds_now() - begin < kMemorySeconds; ++passes) {
    const auto now = threads == 1 ? thread_seconds : seconds_now;
    const double start = now();
    std::vector<std::thread> readers;
    for (size_t t = 1; t < sums.size(); ++t) {
      const auto read = [&, t] { sums[t] += sum(data.data() + t * part, part); };
      try {
        readers.emplace_back(read);
      } catch (const std::system_error&) {
        read();  // no more threads available
      }
    }
    sums[0] += sum(data.data(), part);
    for (std::thread& reader : readers) reader.join();
    const double seconds = now() - start;
    best = std::max(best, part * sums.size() * sizeof(uint64_t) / seconds);
  }
  // All elements are 1. Checking the sums also keeps the compiler from removing the reads.
  uint64_t total = 0;
  for (const uint64_t s : sums) total += s;
  TS_CHECK(total == passes * sums.size() * (part / 4 * 4), "memory reads return wrong values");
  return best * 1e-9;
}

double measure_cache_retention(const Device& device) {
  const int64_t last = std::max(device.l3_bytes, device.l2_bytes);
  const auto words = [](int64_t bytes) { return bytes / sizeof(uint64_t); };
  const std::vector<uint64_t> kept(words(std::min(last / 2, kMostRetained)), 1);
  const std::vector<uint64_t> others(words(std::clamp(2 * last, kLeastBytes, kMostBytes)), 1);
  uint64_t total = 0;
  const auto read = [&] {
    const double start = thread_seconds();
    total += sum(kept.data(), kept.size());
    return thread_seconds() - start;
  };
  std::vector<double> at_once, later, lost;
  for (int round = 0; round < kRetentionRounds; ++round) {
    read();
    at_once.push_back(read());
    for (const double end = seconds_now() + kCacheRetentionSeconds; seconds_now() < end;) {
    }
    later.push_back(read());
    total += sum(others.data(), others.size());
    lost.push_back(read());
  }
  // Checking the sums keeps the compiler from removing the reads.
  TS_CHECK(total == kRetentionRounds * (4 * (kept.size() / 4 * 4) + others.size() / 4 * 4),
           "memory reads return wrong values");
  return retained_share(median(at_once), median(later), median(lost));
}

double retained_share(double at_once, double later, double lost) {
  return lost > at_once ? std::clamp((lost - later) / (lost - at_once), 0.0, 1.0) : 1;
}

}  // namespace tensorsmith::target
