// What the accesses of a kernel find in the caches, by the instruction that makes them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "measure/profile/cache.h"

namespace tensorsmith::measure {

// Of one instruction that touches memory (or one lane of a gather).
struct AccessCounts {
  double accesses = 0;
  std::array<double, 3> misses{};    // by level
  std::array<double, 3> in_order{};  // of these, on the line after the one that this instruction missed last
  double pages = 0;                  // misses of the first level of the TLB
  double split = 0;                  // that touch two lines
};

class MemoryModel {
 public:
  MemoryModel(const CacheHierarchy& caches, size_t sites);
  // address: in a space of its own, where buffers always lie at the same place.
  void access(size_t site, uint64_t address, int32_t bytes, bool write);
  // Fills caches and counts nothing: what software fetches ahead.
  void prefetch(uint64_t address) { touch_line(nullptr, address / line_bytes_, false); }
  // Forgets what was counted; the caches keep what they have.
  void restart();

  const std::vector<AccessCounts>& by_site() const { return counts_; }
  // Lines that each level wrote to the next one.
  const std::array<double, 3>& written_back() const { return written_back_; }

 private:
  struct LastMiss {
    std::array<uint64_t, 3> line{};
  };
  void touch_line(size_t* site, uint64_t line, bool write);
  // A line that level - 1 wrote back.
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
