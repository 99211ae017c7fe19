// The C compiler of this system, as a process. Internal to the room.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tensorsmith::codegen {

// A directory of its own in the system's place for temporary files, removed with all files in it.
class ScratchDirectory {
 public:
  static Result<ScratchDirectory> make();
  ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Status write_file(const std::string& path, const char* data, size_t bytes);
Result<std::vector<char>> read_file(const std::string& path);

// Runs `cc` with these arguments and waits. kUnsupported: there is none; kInvalidArgument, with the first line that it
// printed: it refused.
Status run_c_compiler(const std::vector<std::string>& arguments, const ScratchDirectory& scratch);

}  // namespace tensorsmith::codegen
