// Reports of a kernel's blocks and accesses (codegen/traced.h), put into its LLVM IR. Internal to the room.
#pragma once

#include <llvm/IR/Module.h>

#include <vector>

#include "codegen/traced.h"

namespace tensorsmith::codegen {

// Names each block after its number in the module ("ts12"), by which assembly text tells whose code it is.
inline constexpr const char* kBlockPrefix = "ts";
size_t name_blocks(llvm::Module& module);

// Of a module whose blocks were named.
std::vector<TracedSegment> trace_accesses(llvm::Module& module, TraceBuffer& buffer);

}  // namespace tensorsmith::codegen
