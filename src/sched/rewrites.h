// What steps made of operations, for replays of many traces of one workload. Operations are immutable, and
// cache_write, cache_read and compute_inline make the same of the same ones whatever the loops are: a search
// rewrites each definition once and shares it among all candidates.
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
  // What the result depends on. Two operations are the same if they are one object.
  struct Key {
    Kind kind = Kind::kInline;
    ir::OperationRef op, other;
    ir::Buffer buffer;
    std::string name;
    ir::MemoryScope scope = ir::MemoryScope::kGlobal;
    friend bool operator==(const Key&, const Key&) = default;
  };

  // The stages that make() gave for an equal key, which is called if there are none. The reference holds as
  // long as this object. Any thread may call.
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
