// A driver's shared library, loaded on demand.
#pragma once

#include <string>

#include "base/result.h"

namespace tensorsmith::runtime {

class DriverLibrary {
 public:
  // kNotFound, with `remedy`: there is no such library. It stays loaded for good, since drivers have threads of their
  // own.
  static Result<DriverLibrary> open(const std::string& file, const std::string& remedy);

  // Sets a pointer to a function of the library. Remembers the first that is missing.
  template <typename Function>
  void find(const char* symbol, Function*& function) {
    function = reinterpret_cast<Function*>(address(symbol));
  }
  // kUnsupported: the library lacks a function that was looked for, so it is too old.
  Status complete() const;

 private:
  DriverLibrary(std::string file, void* handle) : file_(std::move(file)), handle_(handle) {}
  void* address(const char* symbol);

  std::string file_;
  void* handle_;
  std::string missing_;
};

// Text of others as part of a line: control characters become spaces, runs of which count once; at most `most` bytes.
std::string in_one_line(const std::string& text, size_t most = 400);

}  // namespace tensorsmith::runtime
