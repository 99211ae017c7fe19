// Generates portable C99: readable kernels that any C compiler can build, and a backend that builds
// them with the system's compiler.
#pragma once

#include <string>
#include <vector>

#include "codegen/backend.h"

namespace tensorsmith::codegen {

// Compiles with the command `cc`, for this machine's architecture only. The kernels need the C
// library's mathematical functions and are loaded as shared libraries.
const Backend& c_backend();

struct CSource {
  std::string symbol;
  std::string text;  // text of a file that includes kCHeaderName
  int64_t shared_workspace_bytes = 0;
  int64_t thread_workspace_bytes = 0;
};
// A backend that only generates text. Its objects are C files; its load() and link() return kUnsupported.
const Backend& c_text_backend();

// Generates the C text of one kernel for a CPU. The text depends on the number and the size of the
// device's vector registers, but not on its architecture. Errors: those of check_compilable();
// kInvalidArgument for a symbol that is not a C identifier; kUnsupported for a device that is not a CPU.
Result<CSource> emit_c(const ir::Program& program, const target::Device& device,
                       const CodegenOptions& options);

inline constexpr const char* kCHeaderName = "tensorsmith_kernels.h";
// Returns the header that every kernel includes: the kernel interface and the helper functions. It
// is the same for all kernels.
std::string c_header();
// Returns the declarations of a kernel and of its demands (SYMBOL_info), one per line.
std::string c_declarations(const std::string& symbol);

// Returns the compiler flags that all kernels need: C99, no contraction of a product and a sum (a kernel
// calls fma where contraction is allowed), and math functions that neither set errno nor trap. No flag
// turns vectorization off: a pragma at the beginning of each kernel's file does that for GCC (dialect.cc).
std::vector<std::string> c_flags();
// Flags for the instruction sets of a device, as GCC and Clang name them.
std::vector<std::string> c_machine_flags(const target::Device& device);

}  // namespace tensorsmith::codegen
