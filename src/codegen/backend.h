// Loop programs -> code that runs. The seam between the compiler and what makes machine code of its programs: no
// backend's library shows here, and nothing above this room names a backend but where one is chosen.
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
  std::string symbol = "kernel";   // exported function
  bool fast_math_contract = true;  // a*b+c may become fma; nothing else is relaxed
};

struct CompiledKernel {
  std::string symbol;
  std::vector<char> object;  // relocatable object file for the target; GPUs: a module, see launches
  // GPUs: what a call of the kernel launches, in order; the workspace that they share is shared_workspace_bytes of the
  // device's memory. Empty on CPUs.
  std::vector<runtime::Launch> launches;
  int64_t shared_workspace_bytes = 0;
  int64_t thread_workspace_bytes = 0;
  bool uses_matrix_units = false;  // which a process must ask for (may_use_tiles)
  double codegen_seconds = 0;
};

// A kernel in this process, as long as it lives.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  virtual TensorsmithKernel function() const = 0;
};

// What can be taken for granted of a backend's kernels.
struct BackendTraits {
  // Objects need no symbol from outside, and load() opens no file and starts no process: kernels can be measured by a
  // confined worker.
  bool self_contained = false;
  bool other_architectures = false;  // devices need not be of this machine's architecture
};

struct TraceBuffer;
struct TracedKernel;

// Stateless: all members may be called from any thread.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "llvm"
  virtual std::string version() const = 0;    // of the compiler behind it: "LLVM 19.1.7"
  virtual BackendTraits traits() const = 0;

  // kInvalidArgument: names that the compiler does not know; kUnsupported: devices that it makes no code for, programs
  // that were scheduled for a GPU.
  virtual Result<CompiledKernel> compile(const ir::Program& program, const target::Device& device,
                                         const CodegenOptions& options) const = 0;
  // The kernel with reports of what it does (codegen/traced.h), written into the buffer. kUnsupported where the backend
  // has no such code, and for processors other than x86-64.
  virtual Result<TracedKernel> compile_traced(const ir::Program& program, const target::Device& device,
                                              const CodegenOptions& options, TraceBuffer& buffer) const;
  // kCorrupt: no object file, or one that needs what it must not; kNotFound: it has no such symbol.
  virtual Result<std::unique_ptr<LoadedKernel>> load(const std::vector<char>& object,
                                                     const std::string& symbol) const = 0;
  // The bytes of one shared library of all objects; its symbols are those of the kernels. GPUs: the modules, one after the
  // other.
  virtual Result<std::vector<char>> link(const std::vector<std::vector<char>>& objects) const = 0;
};

// All of them; the first is the default.
std::span<const Backend* const> backends();
const Backend& default_backend();
// The one that makes code for the device.
const Backend& backend_for(const target::Device& device);
// kNotFound, with the names that there are.
Result<const Backend*> find_backend(std::string_view name);

// What every backend refuses: symbols that are no names, programs that are malformed or bound to a GPU's threads.
Status check_compilable(const ir::Program& program, const CodegenOptions& options);

}  // namespace tensorsmith::codegen
