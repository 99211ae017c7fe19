// Memory for candidates with fences, which detect accesses outside of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace tensorsmith::measure {

// A 64-byte aligned buffer that ends less than 64 bytes before an inaccessible page. It has canary
// bytes on both sides and another inaccessible page in front. Accesses far outside crash; writes
// just outside change a canary.
//
//   | no access | canary ... | buffer | canary < 64 | no access |
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  ~GuardedBuffer();
  // `bytes` must be >= 0. kResourceExhausted if there is no memory.
  static Result<GuardedBuffer> allocate(int64_t bytes);

  std::byte* data() const { return data_; }
  int64_t size() const { return bytes_; }
  // From now on, writing to the buffer crashes.
  Status make_read_only();
  // Rewrites the canaries, and sets each byte of the buffer to `fill`.
  void reset(unsigned char fill);
  bool canaries_intact() const;

 private:
  std::byte* accessible_begin() const;
  std::byte* accessible_end() const;
  void write_canaries();

  std::byte* mapping_ = nullptr;
  int64_t mapping_bytes_ = 0;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace tensorsmith::measure
