#include "base/shipped_file.h"

#include <filesystem>

#include "base/code_file.h"

namespace tensorsmith {

namespace fs = std::filesystem;

std::string shipped_file(const std::string& name) {
  std::error_code error;
  const fs::path folder = fs::path(code_file()).parent_path();
  for (const char* place : {"../share/tensorsmith", "../../models"}) {
    const fs::path file = (folder / place / name).lexically_normal();
    if (fs::is_regular_file(file, error)) return file;
  }
  return {};
}

}  // namespace tensorsmith
