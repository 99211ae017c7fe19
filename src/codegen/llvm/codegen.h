// Loop programs -> machine code through LLVM. No LLVM type is shown here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/stmt.h"
#include "runtime/kernel_abi.h"
#include "target/target.h"

namespace tensorsmith::codegen {

struct CodegenOptions {
  std::string symbol = "kernel";   // exported function
  bool fast_math_contract = true;  // a*b+c may become fma; nothing else is relaxed
};

struct CompiledKernel {
  std::string symbol;
  std::vector<char> object;  // relocatable object file for the target
  int64_t shared_workspace_bytes = 0;
  int64_t thread_workspace_bytes = 0;
  double codegen_seconds = 0;
};

// "LLVM 19.1.7"
std::string compiler_version();

// Thread-safe.
Result<CompiledKernel> compile(const ir::Program& program, const target::Device& device,
                               const CodegenOptions& options);

// For people and tests.
Result<std::string> emit_llvm_ir(const ir::Program& program, const target::Device& device,
                                 const CodegenOptions& options);
Result<std::string> emit_assembly(const ir::Program& program, const target::Device& device,
                                  const CodegenOptions& options);

// Object code loaded into this process.
class LoadedKernel {
 public:
  static Result<std::unique_ptr<LoadedKernel>> load(const std::vector<char>& object,
                                                    const std::string& symbol);
  virtual ~LoadedKernel() = default;
  virtual TensorsmithKernel function() const = 0;
};

// Links objects into one shared library that needs no other library; symbols are those of the kernels. The
// result is the library's file content: nothing is written to a disk.
Result<std::vector<char>> link_shared_library(const std::vector<std::vector<char>>& objects);

}  // namespace tensorsmith::codegen
