#include "runtime/file_io.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/input_file.h"

namespace tensorsmith::runtime {

Error file_error(const std::string& path, const std::string& action, int error_number) {
  const ErrorCode code =
      error_number == ENOENT || error_number == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
  return Error{code, path, action + ": " + std::generic_category().message(error_number)};
}

Mapping::Mapping(Mapping&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (bytes_ > 0) ::munmap(address_, bytes_);
}

Result<Mapping> Mapping::anonymous(int64_t bytes) {
  Mapping mapping;
  if (bytes == 0) return mapping;
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return Error{ErrorCode::kResourceExhausted, "",
                 "cannot get " + std::to_string(bytes) + " bytes of memory"};
  // Huge pages save address translations for activations of megabytes; a system that refuses
  // provides ordinary pages.
  ::madvise(address, bytes, MADV_HUGEPAGE);
  mapping.address_ = address;
  mapping.bytes_ = bytes;
  return mapping;
}

Result<Mapping> Mapping::file(const std::string& path, int64_t bytes) {
  TS_ASSIGN_OR_RETURN(const FileDescriptor fd, open_input(path));
  TS_ASSIGN_OR_RETURN(const int64_t size, input_bytes(fd, path));
  if (size != bytes) {
    return Error{ErrorCode::kCorrupt, path,
                 "has " + std::to_string(size) + " bytes instead of " + std::to_string(bytes) +
                     " (truncated, or from another model)"};
  }
  Mapping mapping;
  if (bytes == 0) return mapping;
  void* address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) return file_error(path, "cannot map", errno);
  mapping.address_ = address;
  mapping.bytes_ = bytes;
  return mapping;
}

Result<FileWriter> FileWriter::create(const std::string& path) {
  FileWriter writer;
  writer.path_ = path;
  writer.fd_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!writer.fd_.valid()) return file_error(path, "cannot create", errno);
  return writer;
}

Status FileWriter::write(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    // Linux writes at most 2 GiB per call.
    const ssize_t done = ::write(fd_.get(), from, std::min<size_t>(bytes, size_t{1} << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return file_error(path_, "cannot write", errno);
    from += done;
    bytes -= done;
  }
  return {};
}

Status FileWriter::close() {
  // EINVAL means that the file system cannot be flushed.
  if (::fsync(fd_.get()) != 0 && errno != EINVAL) return file_error(path_, "cannot write", errno);
  if (::close(fd_.release()) != 0) return file_error(path_, "cannot write", errno);
  return {};
}

Status sync_directory(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return file_error(path, "cannot open", errno);
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return file_error(path, "cannot write", errno);
  return {};
}

}  // namespace tensorsmith::runtime
