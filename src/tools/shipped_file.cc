#include "tools/shipped_file.h"

#include <filesystem>

namespace tensorsmith::tools {

namespace fs = std::filesystem;

std::string shipped_file(const std::string& name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"../share/tensorsmith", "../../models"}) {
    const fs::path file = (program / place / name).lexically_normal();
    if (fs::is_regular_file(file, error)) return file;
  }
  return {};
}

}  // namespace tensorsmith::tools
