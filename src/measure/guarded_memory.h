// Memory that a candidate may use, with fences: what it does outside is noticed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace tensorsmith::measure {

// A 64-byte aligned buffer that ends less than 64 bytes before an inaccessible page, with canary bytes around
// and another inaccessible page in front. Accesses far outside crash; writes just outside change a canary.
//
//   | no access | canary ... | buffer | canary < 64 | no access |
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  ~GuardedBuffer();
  // bytes >= 0. Error kResourceExhausted if there is no memory.
  static Result<GuardedBuffer> allocate(int64_t bytes);

  std::byte* data() const { return data_; }
  int64_t size() const { return bytes_; }
  // From now on, writing to the buffer crashes.
  Status make_read_only();
  // Writes the canaries again, and `fill` to each byte of the buffer.
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
