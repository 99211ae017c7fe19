#include "measure/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "base/floor_div.h"

namespace tensorsmith::measure {
namespace {

constexpr int64_t kGuardedAlignment = 64;
constexpr int kCanary = 0xC5;

int64_t page_bytes() { return ::sysconf(_SC_PAGESIZE); }

bool all_canary(const std::byte* begin, const std::byte* end) {
  return std::all_of(begin, end, [](std::byte b) { return b == std::byte{kCanary}; });
}

}  // namespace

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

GuardedBuffer::~GuardedBuffer() {
  if (mapping_) ::munmap(mapping_, mapping_bytes_);
}

Result<GuardedBuffer> GuardedBuffer::allocate(int64_t bytes) {
  const auto no_memory = [bytes] {
    return Error{ErrorCode::kResourceExhausted, "", "no memory for " + std::to_string(bytes) + " bytes"};
  };
  if (bytes < 0 || bytes > (int64_t{1} << 46)) return no_memory();
  GuardedBuffer buffer;
  // At least 64 canary bytes in front.
  const int64_t accessible = round_up(round_up(bytes, kGuardedAlignment) + kGuardedAlignment, page_bytes());
  const int64_t total = accessible + 2 * page_bytes();
  void* address = ::mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return no_memory();
  buffer.mapping_ = static_cast<std::byte*>(address);
  buffer.mapping_bytes_ = total;
  buffer.bytes_ = bytes;
  if (::mprotect(buffer.accessible_begin(), accessible, PROT_READ | PROT_WRITE) != 0) return no_memory();
  // Huge pages, as for activations in a model. With pages of 4 KiB, the time of a program that streams
  // its weights depends on where the system places them, so a search would choose lucky buffers
  // (docs/decisions/003-prefetches-and-pages.md). A system that refuses provides ordinary pages.
  ::madvise(buffer.accessible_begin(), accessible, MADV_HUGEPAGE);
  buffer.data_ = buffer.accessible_end() - round_up(bytes, kGuardedAlignment);
  buffer.write_canaries();
  return buffer;
}

std::byte* GuardedBuffer::accessible_begin() const { return mapping_ + page_bytes(); }
std::byte* GuardedBuffer::accessible_end() const { return mapping_ + mapping_bytes_ - page_bytes(); }

void GuardedBuffer::write_canaries() {
  std::memset(accessible_begin(), kCanary, data_ - accessible_begin());
  std::memset(data_ + bytes_, kCanary, accessible_end() - data_ - bytes_);
}

Status GuardedBuffer::make_read_only() {
  if (::mprotect(accessible_begin(), accessible_end() - accessible_begin(), PROT_READ) == 0) return {};
  return Error{ErrorCode::kIo, "", "cannot protect memory: " + std::generic_category().message(errno)};
}

void GuardedBuffer::reset(unsigned char fill) {
  std::memset(data_, fill, bytes_);
  write_canaries();
}

bool GuardedBuffer::canaries_intact() const {
  return all_canary(accessible_begin(), data_) && all_canary(data_ + bytes_, accessible_end());
}

}  // namespace tensorsmith::measure
