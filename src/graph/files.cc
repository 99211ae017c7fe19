#include "graph/files.h"

#include <fcntl.h>
#include <unistd.h>

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
  // A link keeps leading to the file. The new file takes no name that another one has.
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  const std::string place = error ? path : target.string();
  std::string temporary;
  int descriptor = -1;
  for (int attempt = 0; attempt < 100 && descriptor < 0; ++attempt) {
    temporary = place + "." + std::to_string(::getpid()) + "." + std::to_string(attempt) + ".tmp";
    descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  if (descriptor < 0) {
    return Error{ErrorCode::kIo, path, std::string("cannot create: ") + std::strerror(errno)};
  }
  std::FILE* file = ::fdopen(descriptor, "wb");
  bool good = file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() &&
              std::fflush(file) == 0 && ::fsync(descriptor) == 0;
  int why = errno;
  if (file != nullptr ? std::fclose(file) != 0 : ::close(descriptor) != 0) {
    if (good) why = errno;
    good = false;
  }
  if (good && std::rename(temporary.c_str(), place.c_str()) != 0) {
    why = errno;
    good = false;
  }
  if (good) return {};
  std::remove(temporary.c_str());
  return Error{ErrorCode::kIo, path, std::string("cannot write: ") + std::strerror(why)};
}

}  // namespace tensorsmith::graph
