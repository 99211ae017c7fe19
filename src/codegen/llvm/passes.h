// Target machines, the optimization pipeline and object emission. Internal to the room.
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

// The machine for a device, made once a thread and kept. Errors: unknown CPU or feature names, devices that
// are no CPUs.
Result<llvm::TargetMachine*> machine_for(const target::Device& device);

// Promotes local buffers to registers, removes common subexpressions, hoists invariant loads and promotes
// stores out of loops. No vectorizer and no loop idioms: schedules decide those, and kernels must not call
// memset.
void optimize(llvm::Module& module, llvm::TargetMachine& machine, const RegisterFile& registers);

// An object file, assembly text.
std::vector<char> emit_object(llvm::Module& module, llvm::TargetMachine& machine);
std::vector<char> emit_text(llvm::Module& module, llvm::TargetMachine& machine);
// With comments that name blocks, spills and reloads.
std::vector<char> emit_commented_text(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tensorsmith::codegen
