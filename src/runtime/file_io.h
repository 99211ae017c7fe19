// File access for the runtime: mappings, and writes that reach the disk. Errors name the path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace tensorsmith::runtime {

// Makes a kNotFound or kIo error from errno, for example "cannot open: No such file or directory",
// with the path as the place.
Error file_error(const std::string& path, const std::string& action, int error_number);

// A memory mapping: anonymous and zero, or a read-only view of a file. Its address never changes.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  // bytes may be 0. Pages are committed when first touched.
  static Result<Mapping> anonymous(int64_t bytes);
  // The file must have exactly the given size.
  static Result<Mapping> file(const std::string& path, int64_t bytes);

  std::byte* data() const { return static_cast<std::byte*>(address_); }
  int64_t size() const { return bytes_; }

 private:
  void* address_ = nullptr;
  int64_t bytes_ = 0;
};

// Writes a new file sequentially; close() flushes it to the disk.
class FileWriter {
 public:
  static Result<FileWriter> create(const std::string& path);
  Status write(const void* data, size_t bytes);
  Status close();

 private:
  std::string path_;
  FileDescriptor fd_;
};

// Flushes a directory's entries to the disk.
Status sync_directory(const std::string& path);

}  // namespace tensorsmith::runtime
