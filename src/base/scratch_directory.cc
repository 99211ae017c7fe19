#include "base/scratch_directory.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace tensorsmith {

namespace fs = std::filesystem;

Result<ScratchDirectory> ScratchDirectory::create(const std::string& prefix) {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  const char* const asked = std::getenv("TMPDIR");  // only for error messages
  const std::string place = asked != nullptr ? "TMPDIR=" + std::string(asked) : "/tmp";
  constexpr const char* kAdvice = "; set TMPDIR to a writable folder";
  if (error)
    return Error{ErrorCode::kNotFound, place,
                 "is not a usable folder for temporary files" + std::string(kAdvice)};
  std::string pattern = (folder / (prefix + "-XXXXXX")).string();
  if (!::mkdtemp(pattern.data()))
    return Error{ErrorCode::kIo, place,
                 std::string("cannot make a temporary folder: ") + std::strerror(errno) + kAdvice};
  return ScratchDirectory(pattern);
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

std::string why_not_writable(const std::string& folder) {
  std::string pattern = (fs::path(folder) / ".tensorsmith-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    const bool denied = errno == EACCES || errno == EPERM || errno == EROFS;
    return denied ? "is not writable" : std::string("cannot take new files: ") + std::strerror(errno);
  }
  ::rmdir(pattern.c_str());
  return {};
}

}  // namespace tensorsmith
