// Portable C99: kernels as text that people can read and any C compiler can build, and a backend that builds them with
// the compiler of this system.
#pragma once

#include <string>
#include <vector>

#include "codegen/backend.h"

namespace tensorsmith::codegen {

// Compiles with the command `cc`, of this machine's architecture only. Its kernels need the C library's mathematical
// functions, and are loaded as shared libraries.
const Backend& c_backend();

struct CSource {
  std::string symbol;
  std::string text;  // a file, which includes kCHeaderName
  int64_t shared_workspace_bytes = 0;
  int64_t thread_workspace_bytes = 0;
};
// A backend that stops before the compiler: its objects are the text, which nothing here loads or links.
const Backend& c_text_backend();

// One kernel. Symbols must be names of C. The device says how long vectors are; its architecture does not matter.
Result<CSource> emit_c(const ir::Program& program, const target::Device& device,
                       const CodegenOptions& options);

inline constexpr const char* kCHeaderName = "tensorsmith_kernels.h";
// The header that every kernel includes: the kernel interface and what kernels are made of. The same for all of them.
std::string c_header();
// Declarations of a kernel and of what it demands of its caller, a line each.
std::string c_declarations(const std::string& symbol);

// Flags that the meaning of the kernels relies on: no contraction across expressions, no vectorizer (backend.cc).
std::vector<std::string> c_flags();
// The instructions of a device, as GCC and Clang name them.
std::vector<std::string> c_machine_flags(const target::Device& device);

}  // namespace tensorsmith::codegen
