// Target machines, the optimization pipeline and object emission. Internal to this directory.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "codegen/llvm/reload.h"
#include "target/target.h"

namespace tensorsmith::codegen {

// Returns the target machine for a device, which is created once per thread. Errors: unknown CPU or
// feature names, and devices that are not CPUs.
Result<llvm::TargetMachine*> machine_for(const target::Device& device);

// Promotes local buffers to registers, removes common subexpressions, hoists invariant loads and
// promotes stores out of loops. The pipeline has no vectorizers, since schedules decide that, and
// no loop idiom recognition, since kernels must not call memset.
void optimize(llvm::Module& module, llvm::TargetMachine& machine, const RegisterFile& registers);

// Emits an object file or assembly text.
std::vector<char> emit_object(llvm::Module& module, llvm::TargetMachine& machine);
std::vector<char> emit_text(llvm::Module& module, llvm::TargetMachine& machine);
// Emits assembly text with comments that name blocks, spills and reloads.
std::vector<char> emit_commented_text(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tensorsmith::codegen
