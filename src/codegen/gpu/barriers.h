// Places barriers among the threads of a block.
#pragma once

#include <unordered_set>

#include "codegen/gpu/kernels.h"

namespace tensorsmith::codegen {

// Returns the statements before which the threads of a block must synchronize: between a write of a
// shared buffer by one thread and a read or write of it by another. Elements whose indices include
// a thread's index belong to that thread alone. Returns kUnsupported if a barrier would be needed
// where not all threads come (under a condition or in a loop that differs between threads). The
// kernel must not have loops over virtual threads.
Result<std::unordered_set<const ir::StmtNode*>> place_barriers(const GpuKernel& kernel);

}  // namespace tensorsmith::codegen
