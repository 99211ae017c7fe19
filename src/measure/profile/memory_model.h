// Counts the cache behaviour of a kernel's accesses per instruction.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "measure/profile/cache.h"

namespace tensorsmith::measure {

// Counts of one instruction that accesses memory (or of one lane of a gather).
struct AccessCounts {
  double accesses = 0;
  std::array<double, 3> misses{};  // by level
  // Misses among these on the line after the one that this instruction missed last.
  std::array<double, 3> in_order{};
  double pages = 0;  // misses of the first-level TLB
  double split = 0;  // accesses that touch two lines
};

class MemoryModel {
 public:
  MemoryModel(const CacheHierarchy& caches, size_t sites);
  // address: an offset in a simulated address space with fixed positions of the buffers.
  void access(size_t site, uint64_t address, int32_t bytes, bool write);
  // Models a software prefetch: fills the caches without counting.
  void prefetch(uint64_t address) { touch_line(nullptr, address / line_bytes_, false); }
  // Resets the counts but keeps the contents of the caches.
  void restart();

  const std::vector<AccessCounts>& by_site() const { return counts_; }
  // Number of lines that each level wrote to the next one.
  const std::array<double, 3>& written_back() const { return written_back_; }

 private:
  struct LastMiss {
    std::array<uint64_t, 3> line{};
  };
  void touch_line(size_t* site, uint64_t line, bool write);
  // Handles a line that level - 1 wrote back.
  void write_back(size_t level, uint64_t line);
  void translate(size_t site, uint64_t address);

  uint64_t line_bytes_;
  std::vector<Cache> levels_;
  Cache tlb_;
  uint64_t last_page_ = ~uint64_t{0};
  std::vector<AccessCounts> counts_;
  std::vector<LastMiss> last_;
  std::array<double, 3> written_back_{};
};

}  // namespace tensorsmith::measure
