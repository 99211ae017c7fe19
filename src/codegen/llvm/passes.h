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

// Returns the target machine for a device. Each thread creates its own and keeps it. Errors:
// kInvalidArgument for a processor or feature that LLVM does not know; kUnsupported for a device that is
// neither an x86-64 CPU with SSE4.2 nor an aarch64 CPU.
Result<llvm::TargetMachine*> machine_for(const target::Device& device);

// Promotes local buffers to registers, removes common subexpressions, hoists invariant loads out of
// loops, and moves stores behind loops. Where more vectors are live than `registers` holds, loads are
// repeated (reload.h). No pass vectorizes, since schedules decide what is vectorized. No pass turns loops
// into calls of memset, since kernels must call nothing.
void optimize(llvm::Module& module, llvm::TargetMachine& machine, const RegisterFile& registers);

// Emits an object file.
std::vector<char> emit_object(llvm::Module& module, llvm::TargetMachine& machine);
// Emits assembly text without comments.
std::vector<char> emit_text(llvm::Module& module, llvm::TargetMachine& machine);
// Emits assembly text with comments that name blocks, spills and reloads.
std::vector<char> emit_commented_text(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tensorsmith::codegen
