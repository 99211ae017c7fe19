#include "base/input_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace tensorsmith {
namespace {

namespace fs = std::filesystem;

// O_NONBLOCK: if the file was replaced by a FIFO after it was checked, open must not wait for a
// writer.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

Error cannot_open(const std::string& path, int why) {
  if (why == ENOENT || why == ENOTDIR) return {ErrorCode::kNotFound, path, "cannot open: no such file"};
  return {ErrorCode::kIo, path, "cannot open: " + std::generic_category().message(why)};
}

Status check_regular(const std::string& path, mode_t mode) {
  if (S_ISREG(mode)) return {};
  const auto no_file = [&](const char* what) {
    return Error{ErrorCode::kInvalidArgument, path, std::string("is a ") + what + ", not a file"};
  };
  if (S_ISDIR(mode)) return no_file("folder");
  if (S_ISFIFO(mode)) return no_file("FIFO or pipe");
  if (S_ISSOCK(mode)) return no_file("socket");
  return no_file("device");
}

Result<FileDescriptor> checked(FileDescriptor file, const std::string& path) {
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return cannot_open(path, errno);
  TS_RETURN_IF_ERROR(check_regular(path, info.st_mode));
  return file;
}

// Returns -1 with errno ENOSYS if the kernel or its sandbox does not support the call.
int open_beneath(const std::string& folder, const std::string& path) {
  const FileDescriptor directory(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return -1;
  open_how how = {};
  how.flags = kOpenFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, directory.get(), path.c_str(), &how, sizeof how);
  if (fd < 0 && errno == EPERM) errno = ENOSYS;
  return fd;
}

// Returns the part of the path below the folder, with all symlinks resolved; empty unless the path
// is below the folder.
fs::path part_below(const fs::path& folder, const fs::path& path) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return {};
  const fs::path real = fs::canonical(path, error);
  if (error) return {};
  const auto [end, rest] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
  if (end != root.end()) return {};
  fs::path below;
  for (auto part = rest; part != real.end(); ++part) below /= *part;
  return below;
}

}  // namespace

Result<FileDescriptor> open_input(const std::string& path) {
  // Opening a device may have side effects (rewind a tape), so its type is checked first.
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return cannot_open(path, errno);
  TS_RETURN_IF_ERROR(check_regular(path, info.st_mode));
  FileDescriptor file(::open(path.c_str(), kOpenFlags));
  if (!file.valid()) return cannot_open(path, errno);
  return checked(std::move(file), path);
}

Result<FileDescriptor> open_input_below(const std::string& folder, const std::string& path,
                                        const std::string& also) {
  const std::string full = (fs::path(folder) / path).string();
  const Error outside{
      ErrorCode::kInvalidArgument, full,
      "is a file outside the folder " + folder + ", or a link to one; copy the file into the folder"};
  if (fs::path(path).is_absolute()) return outside;
  struct stat info = {};
  if (::stat(full.c_str(), &info) != 0) return cannot_open(full, errno);
  TS_RETURN_IF_ERROR(check_regular(full, info.st_mode));
  for (const std::string& root : {folder, also}) {
    if (root.empty()) continue;
    const fs::path below = part_below(root, full);
    if (below.empty()) continue;
    // The resolved path contains no symlinks, and openat2 refuses one that is created meanwhile and
    // leads out of the folder. Without openat2, O_NOFOLLOW only guards the last component of the path.
    FileDescriptor file(open_beneath(root, below.string()));
    if (!file.valid() && errno == ENOSYS)
      file = FileDescriptor(::open((fs::path(root) / below).c_str(), kOpenFlags | O_NOFOLLOW));
    if (!file.valid() && (errno == EXDEV || errno == ELOOP)) return outside;
    if (!file.valid()) return cannot_open(full, errno);
    return checked(std::move(file), full);
  }
  return outside;
}

Result<int64_t> input_bytes(const FileDescriptor& file, const std::string& path) {
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return cannot_open(path, errno);
  return info.st_size;
}

Status read_exactly(const FileDescriptor& file, const std::string& path, int64_t offset, void* out,
                    int64_t bytes) {
  char* to = static_cast<char*>(out);
  while (bytes > 0) {
    // Linux reads at most 2 GiB per call.
    const ssize_t got = ::pread(file.get(), to, std::min(bytes, int64_t{1} << 30), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{ErrorCode::kIo, path, "cannot read: " + std::generic_category().message(errno)};
    if (got == 0) return Error{ErrorCode::kCorrupt, path, "is shorter than expected"};
    to += got;
    offset += got;
    bytes -= got;
  }
  return {};
}

Result<std::string> read_input(const std::string& path, int64_t max_bytes) {
  TS_ASSIGN_OR_RETURN(const FileDescriptor file, open_input(path));
  return read_input(file, path, max_bytes);
}

Result<std::string> read_input(const FileDescriptor& file, const std::string& path, int64_t max_bytes) {
  const Error too_long{ErrorCode::kResourceExhausted, path,
                       "is longer than " + describe_bytes(max_bytes) + ", the limit for such a file"};
  TS_ASSIGN_OR_RETURN(const int64_t expected, input_bytes(file, path));
  if (expected > max_bytes) return too_long;
  // The size is only a hint: a file that grows is read to its end, within the limit.
  constexpr int64_t kLeast = 1 << 12;
  std::string bytes;
  int64_t done = 0;
  while (true) {
    if (done == std::ssize(bytes)) {
      if (done > max_bytes) return too_long;
      const int64_t room = std::max({kLeast, expected + 1 - done, done / 2});
      bytes.resize(done + std::min(room, max_bytes + 1 - done));
    }
    const size_t free = bytes.size() - done;
    const ssize_t got = ::pread(file.get(), bytes.data() + done, std::min(free, size_t{1} << 30), done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{ErrorCode::kIo, path, "cannot read: " + std::generic_category().message(errno)};
    if (got == 0) break;
    done += got;
  }
  bytes.resize(done);
  return bytes;
}

std::string describe_bytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + " " + kUnits[unit];
}

}  // namespace tensorsmith
