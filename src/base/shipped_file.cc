#include "base/shipped_file.h"

#include <filesystem>

#include "base/code_file.h"

namespace tensorsmith {

namespace fs = std::filesystem;

std::string shipped_file(const std::string& name) {
  std::error_code error;
  const fs::path folder = fs::path(code_file()).parent_path();
  fs::path file = (folder / "../share/tensorsmith" / name).lexically_normal();
  if (fs::is_regular_file(file, error)) return file;
  // Tests are deeper in the build directory than the program.
  for (fs::path build = folder; build.has_relative_path(); build = build.parent_path()) {
    if (!fs::is_regular_file(build / "CMakeCache.txt", error)) continue;
    file = (build / "../../models" / name).lexically_normal();
    if (fs::is_regular_file(file, error)) return file;
  }
  return {};
}

}  // namespace tensorsmith
