// Compiles loop programs to executable code. This is the boundary between the compiler and the
// backends: no library that a backend uses appears in this header, and code above this directory
// names a backend only where it chooses one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/stmt.h"
#include "runtime/kernel_abi.h"
#include "runtime/launch.h"
#include "target/target.h"

namespace tensorsmith::codegen {

struct CodegenOptions {
  std::string symbol = "kernel";   // name of the exported function
  bool fast_math_contract = true;  // a*b+c may become fma; nothing else is relaxed
};

struct CompiledKernel {
  std::string symbol;
  std::vector<char> object;  // relocatable object file for the target; a module on GPUs, see
                             // launches
  // The launches that make up a call of a GPU kernel, in order. They share a workspace of
  // shared_workspace_bytes in the device's memory. Empty on CPUs.
  std::vector<runtime::Launch> launches;
  int64_t shared_workspace_bytes = 0;
  int64_t thread_workspace_bytes = 0;
  bool uses_matrix_units = false;  // the process must ask for permission to use them (may_use_tiles)
  double codegen_seconds = 0;
};

// A kernel that is loaded into this process for as long as the object lives.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  virtual TensorsmithKernel function() const = 0;
};

// Properties that all kernels of a backend have.
struct BackendTraits {
  // Objects need no external symbols, and load() opens no file and starts no process, so that a
  // confined worker can measure the kernels.
  bool self_contained = false;
  bool other_architectures = false;  // kernels may be for devices of another architecture than this
                                     // machine's
};

struct TraceBuffer;
struct TracedKernel;

// Stateless: all members may be called from any thread.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // for example "llvm"
  virtual std::string version() const = 0;    // version of the compiler behind it, for example "LLVM
                                              // 19.1.7"
  virtual BackendTraits traits() const = 0;

  // Errors: kInvalidArgument for a malformed program, for a symbol that cannot be a name, and for a
  // processor, feature or code that the compiler rejects; kUnsupported for a device that the backend makes
  // no code for, for a program that was scheduled for another kind of device, and if the compiler is
  // missing; kResourceExhausted for a program that exceeds the limits of a GPU.
  virtual Result<CompiledKernel> compile(const ir::Program& program, const target::Device& device,
                                         const CodegenOptions& options) const = 0;
  // Compiles a kernel that also writes reports of its execution to the buffer (codegen/traced.h).
  // Returns kUnsupported if the backend has no such code, and for processors other than x86-64.
  virtual Result<TracedKernel> compile_traced(const ir::Program& program, const target::Device& device,
                                              const CodegenOptions& options, TraceBuffer& buffer) const;
  // Errors: kCorrupt if `object` is no object file or needs symbols that are not allowed; kNotFound
  // if it lacks the symbol.
  virtual Result<std::unique_ptr<LoadedKernel>> load(const std::vector<char>& object,
                                                     const std::string& symbol) const = 0;
  // Returns the bytes of one shared library that contains all objects and exports the kernels'
  // symbols. On GPUs, it returns the modules one after the other.
  virtual Result<std::vector<char>> link(const std::vector<std::vector<char>>& objects) const = 0;
};

// The backends that make kernels, and that a user can choose by name; the first is the default.
// Backends that only make text (c_text_backend) are not among them.
std::span<const Backend* const> backends();
const Backend& default_backend();
// Returns the default backend for a CPU, and for a GPU the backend of the platform that runs its
// architecture. Error: kUnsupported if no platform runs that architecture.
Result<const Backend*> backend_for(const target::Device& device);
// Returns kNotFound, with a list of the known names, if there is no such backend.
Result<const Backend*> find_backend(std::string_view name);

// The checks that all backends for CPUs have in common. Errors: kInvalidArgument for a symbol with other
// characters than letters, digits, '_' and '.', and for a malformed program; kUnsupported for a program
// with loops over a GPU's threads.
Status check_compilable(const ir::Program& program, const CodegenOptions& options);

}  // namespace tensorsmith::codegen
