// Machine code generation through LLVM. This header uses no LLVM types.
#pragma once

#include <string>

#include "codegen/backend.h"

namespace tensorsmith::codegen {

const Backend& llvm_backend();

// Textual output for people and for tests.
Result<std::string> emit_llvm_ir(const ir::Program& program, const target::Device& device,
                                 const CodegenOptions& options);
Result<std::string> emit_assembly(const ir::Program& program, const target::Device& device,
                                  const CodegenOptions& options);

}  // namespace tensorsmith::codegen
