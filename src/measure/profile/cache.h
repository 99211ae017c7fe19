// Caches of one core, simulated: sets of lines with the least recently used one replaced.
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

// One level. A line is a number: its address over the size of a line.
class Cache {
 public:
  Cache(const CacheShape& shape, int line_bytes);
  // What an access found and what it pushed out.
  struct Outcome {
    bool hit = false;
    bool writes_back = false;  // a line that was written to had to go
    uint64_t victim = 0;       // its number, where writes_back
  };
  Outcome access(uint64_t line, bool write);
  int64_t sets() const { return static_cast<int64_t>(sets_); }

 private:
  struct Entry {
    uint64_t line = ~uint64_t{0};
    bool dirty = false;
  };
  size_t ways_, sets_;
  std::vector<Entry> entries_;  // by set, the most recently used first
};

// What a device's file says of its caches, the rest assumed: L1 has a way for each 4 KiB (the page, by which it is
// indexed), L2 has l2_ways or 8, L3 16. A device without L3 has two levels.
struct CacheHierarchy {
  int line_bytes = 64;
  std::array<CacheShape, 3> levels;  // bytes 0: not there
};
CacheHierarchy caches_of(const target::Device& device);

}  // namespace tensorsmith::measure
