// A new directory in the system's directory for temporary files, which is removed with its content.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace tensorsmith {

class ScratchDirectory {
 public:
  // Creates the directory; its name begins with `prefix`. kNotFound and kIo name the parent
  // directory, which TMPDIR selects as for every program.
  static Result<ScratchDirectory> create(const std::string& prefix);
  ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();

  // Returns the path of a file in the directory.
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace tensorsmith
