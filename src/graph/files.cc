#include "graph/files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace tensorsmith::graph {

Result<std::string> read_file(const std::string& path, int64_t max_bytes) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status)) {
    return Error{ErrorCode::kNotFound, path, "no such file"};
  }
  if (std::filesystem::is_directory(status)) {
    return Error{ErrorCode::kInvalidArgument, path, "is a folder, not a file"};
  }
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    return Error{ErrorCode::kIo, path, std::string("cannot open: ") + std::strerror(errno)};
  }
  std::string bytes;
  char chunk[1 << 16];
  size_t got = 0;
  while ((got = std::fread(chunk, 1, sizeof chunk, file)) > 0) {
    if (static_cast<int64_t>(bytes.size() + got) > max_bytes) {
      std::fclose(file);
      return Error{ErrorCode::kResourceExhausted, path,
                   "is longer than " + std::to_string(max_bytes) + " bytes"};
    }
    bytes.append(chunk, got);
  }
  const bool good = std::ferror(file) == 0;
  std::fclose(file);
  if (!good) return Error{ErrorCode::kIo, path, "cannot read"};
  return bytes;
}

Status write_file(const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".tmp";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) {
    return Error{ErrorCode::kIo, path, std::string("cannot create: ") + std::strerror(errno)};
  }
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    std::remove(temporary.c_str());
    return Error{ErrorCode::kIo, path, "cannot write: " + reason};
  }
  return {};
}

}  // namespace tensorsmith::graph
