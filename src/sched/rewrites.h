// Caches the stages that steps make from operations, for replays of many traces of one workload.
// Operations are immutable, and cache_write, cache_read and compute_inline give the same result for
// the same operations whatever the loops are. So a search rewrites each definition once and shares
// it among all candidates.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "sched/schedule.h"

namespace tensorsmith::sched {

class Rewrites {
 public:
  enum class Kind : uint8_t { kCacheWrite, kCacheRead, kRedirect, kInline };
  // The inputs that the result depends on. Two operations are equal only if they are the same
  // object.
  struct Key {
    Kind kind = Kind::kInline;
    ir::OperationRef op, other;
    ir::Buffer buffer;
    std::string name;
    ir::MemoryScope scope = ir::MemoryScope::kGlobal;
    friend bool operator==(const Key&, const Key&) = default;
  };

  // Returns the stages that make() has returned for an equal key, and calls it if there are none.
  // The reference is valid as long as this object. Thread-safe.
  template <class Make>
  const std::vector<Stage>& get(Key key, Make&& make) {
    const std::lock_guard lock(mutex_);
    if (const auto it = known_.find(key); it != known_.end()) return *it->second;
    auto made = std::make_unique<const std::vector<Stage>>(make());
    return *known_.emplace(std::move(key), std::move(made)).first->second;
  }

 private:
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  std::mutex mutex_;
  std::unordered_map<Key, std::unique_ptr<const std::vector<Stage>>, KeyHash> known_;
};

}  // namespace tensorsmith::sched
