// Simulates the caches of one core: set-associative with LRU replacement.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "target/target.h"

namespace tensorsmith::measure {

struct CacheShape {
  int64_t bytes = 0;
  int ways = 1;
};

// One level. A line is identified by its address divided by the line size.
class Cache {
 public:
  Cache(const CacheShape& shape, int line_bytes);
  // Result of an access.
  struct Outcome {
    bool hit = false;
    bool writes_back = false;  // a modified line was evicted
    uint64_t victim = 0;       // number of the evicted line if writes_back
  };
  Outcome access(uint64_t line, bool write);
  int64_t sets() const { return sets_; }

 private:
  struct Entry {
    uint64_t line = ~uint64_t{0};
    bool dirty = false;
  };
  size_t ways_, sets_;
  std::vector<Entry> entries_;  // by set, the most recently used first
};

// Returns the caches in a device's file; missing values are assumed: L1 has one way per 4 KiB (the
// page size, since L1 is indexed by page offsets), L2 has l2_ways or 8 ways, L3 16. A device
// without L3 has two levels.
struct CacheHierarchy {
  int line_bytes = 64;
  std::array<CacheShape, 3> levels;  // bytes = 0: level does not exist
};
CacheHierarchy caches_of(const target::Device& device);

}  // namespace tensorsmith::measure
