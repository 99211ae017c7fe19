// Caches the shapes of stores by everything that they depend on. The candidates of a search have
// most stages in common: a new tile of one stage leaves the loops of the others unchanged.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "feature/store_collector.h"
#include "ir/workload.h"

namespace tensorsmith::feature {

class ShapeCache {
 public:
  // Returns null if the key is unknown. The pointer is valid until the next keep().
  const StoreShape* find(const std::vector<int64_t>& key) const {
    const auto it = known_.find(key);
    return it == known_.end() ? nullptr : &it->second.shape;
  }
  // `op`: the operation whose address is in the key. It lives as long as the entry, so that no
  // other operation takes its address.
  void keep(const std::vector<int64_t>& key, ir::OperationRef op, const StoreShape& shape) {
    if (known_.size() >= kMostEntries) known_.clear();
    known_.emplace(key, Entry{std::move(op), shape});
  }

 private:
  static constexpr size_t kMostEntries = 8192;  // each of about a kilobyte
  struct Entry {
    ir::OperationRef op;
    StoreShape shape;
  };
  struct KeyHash {
    size_t operator()(const std::vector<int64_t>& key) const {
      uint64_t hash = key.size();
      for (int64_t value : key) {
        hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
        hash ^= hash >> 29;
      }
      return hash;
    }
  };
  std::unordered_map<std::vector<int64_t>, Entry, KeyHash> known_;
};

}  // namespace tensorsmith::feature
