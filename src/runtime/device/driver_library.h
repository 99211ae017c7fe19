// A driver's shared library, loaded on demand.
#pragma once

#include <string>

#include "base/result.h"

namespace tensorsmith::runtime {

class DriverLibrary {
 public:
  // Opens the library. Returns kNotFound, with `remedy`, if it does not exist. The library is never
  // unloaded, since drivers have threads of their own.
  static Result<DriverLibrary> open(const std::string& file, const std::string& remedy);

  // Sets a pointer to a function of the library. The first missing function is remembered.
  template <typename Function>
  void find(const char* symbol, Function*& function) {
    function = reinterpret_cast<Function*>(address(symbol));
  }
  // Returns kUnsupported if the library lacks one of the requested functions, so that it is too
  // old.
  Status complete() const;

 private:
  DriverLibrary(std::string file, void* handle) : file_(std::move(file)), handle_(handle) {}
  void* address(const char* symbol);

  std::string file_;
  void* handle_;
  std::string missing_;
};

// Formats foreign text as part of a line: each run of control characters becomes a space, and the
// result has at most `most` bytes.
std::string in_one_line(const std::string& text, size_t most = 400);

}  // namespace tensorsmith::runtime
