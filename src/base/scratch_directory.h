// Directories that are made for a moment: one in the system's directory for temporary files, which is removed
// with its content, and one that shows whether a folder is writable.
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

// Returns why nothing can be created in the folder, such as "is not writable"; empty if it can. Makes and
// removes a directory there: only an attempt shows it, since for the superuser and on special file systems
// access() allows everything.
std::string why_not_writable(const std::string& folder);

}  // namespace tensorsmith
