#include "graph/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace tensorsmith::graph {

Status write_file(const std::string& path, std::string_view bytes) {
  // If the path is a symlink, the file that it points to is replaced. Temporary names that exist
  // already are skipped.
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
