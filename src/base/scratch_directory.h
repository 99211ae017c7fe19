// A directory of its own in the system's place for temporary files, removed with all in it.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace tensorsmith {

class ScratchDirectory {
 public:
  // prefix: of its name. kNotFound and kIo name the place, which TMPDIR chooses as for every program.
  static Result<ScratchDirectory> create(const std::string& prefix);
  ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();

  // Of a file in it.
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace tensorsmith
