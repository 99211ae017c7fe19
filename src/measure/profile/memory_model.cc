#include "measure/profile/memory_model.h"

namespace tensorsmith::measure {

namespace {
constexpr uint64_t kModelPageBytes = 4096;
// 64 pages of 4 KiB, four ways: device files do not state it; cores of the last ten years have 64
// to 96 entries.
constexpr CacheShape kTlb{64 * kModelPageBytes, 4};
}  // namespace

MemoryModel::MemoryModel(const CacheHierarchy& caches, size_t sites)
    : line_bytes_(caches.line_bytes), tlb_(kTlb, kModelPageBytes), counts_(sites), last_(sites) {
  for (const CacheShape& shape : caches.levels) {
    if (shape.bytes > 0) levels_.emplace_back(shape, caches.line_bytes);
  }
}

void MemoryModel::restart() {
  counts_.assign(counts_.size(), {});
  written_back_ = {};
}

void MemoryModel::translate(size_t site, uint64_t address) {
  const uint64_t page = address / kModelPageBytes;
  if (page == last_page_) return;
  last_page_ = page;
  if (!tlb_.access(page, false).hit) ++counts_[site].pages;
}

void MemoryModel::access(size_t site, uint64_t address, int32_t bytes, bool write) {
  AccessCounts& counts = counts_[site];
  ++counts.accesses;
  translate(site, address);
  const uint64_t first = address / line_bytes_;
  const uint64_t last = (address + bytes - 1) / line_bytes_;
  touch_line(&site, first, write);
  if (last == first) return;
  ++counts.split;
  touch_line(&site, last, write);
}

void MemoryModel::touch_line(size_t* site, uint64_t line, bool write) {
  for (size_t level = 0; level < levels_.size(); ++level) {
    // Only the first level is written; the others are updated when the line is evicted.
    const Cache::Outcome outcome = levels_[level].access(line, write && level == 0);
    if (outcome.writes_back) {
      ++written_back_[level];
      write_back(level + 1, outcome.victim);
    }
    if (outcome.hit) return;
    if (site == nullptr) continue;
    ++counts_[*site].misses[level];
    uint64_t& last = last_[*site].line[level];
    if (line == last + 1) ++counts_[*site].in_order[level];
    last = line;
  }
}

void MemoryModel::write_back(size_t level, uint64_t line) {
  for (; level < levels_.size(); ++level) {
    const Cache::Outcome outcome = levels_[level].access(line, true);
    if (!outcome.writes_back) return;
    ++written_back_[level];
    line = outcome.victim;
  }
}

}  // namespace tensorsmith::measure
