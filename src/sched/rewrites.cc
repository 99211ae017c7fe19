#include "sched/rewrites.h"

#include "base/hash.h"

namespace tensorsmith::sched {

size_t Rewrites::KeyHash::operator()(const Key& key) const {
  const auto address = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
  // The name is determined by the operation, except for a number.
  return static_cast<size_t>((address(key.op.get()) * 31 + address(key.other.get())) * 31 +
                             address(key.buffer.get()) * 8 + static_cast<uint64_t>(key.kind)) *
             0x9E3779B97F4A7C15U >>
         7;
}

}  // namespace tensorsmith::sched
