// A worker's view of a task's memory file.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/result.h"

namespace tensorsmith::measure {

class TaskMemory {
 public:
  explicit TaskMemory(int64_t bytes) : bytes_(bytes) {}
  TaskMemory(const TaskMemory&) = delete;
  TaskMemory& operator=(const TaskMemory&) = delete;
  ~TaskMemory() {
    if (address_) ::munmap(address_, bytes_);
  }
  // The caller keeps `fd`, which is not needed any more afterwards.
  Status map(int fd) {
    if (bytes_ == 0) return {};
    // Not fstat(): glibc implements it by a system call that can query any file.
    if (::lseek(fd, 0, SEEK_END) < bytes_)
      return Error{ErrorCode::kCorrupt, "", "the task's memory is too small"};
    void* address = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED)
      return Error{ErrorCode::kResourceExhausted, "", "cannot map the task's memory"};
    address_ = address;
    return {};
  }
  const std::byte* at(int64_t offset) const { return static_cast<const std::byte*>(address_) + offset; }
  // Fails once the parent has sealed the memory, because the expected outputs are then final.
  Status make_writable(bool writable) {
    if (bytes_ == 0 || ::mprotect(address_, bytes_, writable ? PROT_READ | PROT_WRITE : PROT_READ) == 0)
      return {};
    return Error{ErrorCode::kIo, "", "cannot write the expected outputs"};
  }
  void write(int64_t offset, const std::byte* from, int64_t bytes) {
    if (bytes > 0) std::memcpy(static_cast<std::byte*>(address_) + offset, from, bytes);
  }

 private:
  int64_t bytes_;
  void* address_ = nullptr;
};

}  // namespace tensorsmith::measure
