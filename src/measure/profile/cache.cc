#include "measure/profile/cache.h"

#include <algorithm>

namespace tensorsmith::measure {

namespace {
constexpr int64_t kPageBytes = 4096;
constexpr int kAssumedL2Ways = 8, kAssumedL3Ways = 16;
}  // namespace

Cache::Cache(const CacheShape& shape, int line_bytes)
    : ways_(std::max(shape.ways, 1)),
      sets_(std::max<size_t>(1, shape.bytes / line_bytes / ways_)),
      entries_(sets_ * ways_) {}

Cache::Outcome Cache::access(uint64_t line, bool write) {
  Entry* set = entries_.data() + line % sets_ * ways_;
  size_t way = 0;
  while (way < ways_ && set[way].line != line) ++way;
  Outcome out;
  out.hit = way < ways_;
  Entry entry{line, write};
  if (out.hit) {
    entry.dirty |= set[way].dirty;
  } else {
    way = ways_ - 1;
    out.writes_back = set[way].dirty;
    out.victim = set[way].line;
  }
  for (; way > 0; --way) set[way] = set[way - 1];
  set[0] = entry;
  return out;
}

CacheHierarchy caches_of(const target::Device& device) {
  CacheHierarchy out;
  out.line_bytes = device.cacheline_bytes;
  out.levels[0] = {device.l1_bytes, std::clamp(static_cast<int>(device.l1_bytes / kPageBytes), 4, 16)};
  out.levels[1] = {device.l2_bytes,
                   device.cpu().rates.l2_ways > 0 ? device.cpu().rates.l2_ways : kAssumedL2Ways};
  out.levels[2] = {device.l3_bytes, kAssumedL3Ways};
  return out;
}

}  // namespace tensorsmith::measure
