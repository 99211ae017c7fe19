// Inserts reports of a kernel's blocks and accesses (codegen/traced.h) into its LLVM IR. Internal
// to this directory.
#pragma once

#include <llvm/IR/Module.h>

#include <vector>

#include "codegen/traced.h"

namespace tensorsmith::codegen {

// Names each block after its number in the module ("ts12"), so that assembly text shows which block
// code belongs to.
inline constexpr const char* kBlockPrefix = "ts";
size_t name_blocks(llvm::Module& module);

// Inserts the reports into a module whose blocks have been named.
std::vector<TracedSegment> trace_accesses(llvm::Module& module, TraceBuffer& buffer);

}  // namespace tensorsmith::codegen
