// Where the threads of a block must wait for each other.
#pragma once

#include <unordered_set>

#include "codegen/gpu/kernels.h"

namespace tensorsmith::codegen {

// The statements before which all threads of the block meet: between a write of a shared buffer by one thread and a read
// or write of it by another. Elements with a thread's index among theirs are that thread's own.
// kUnsupported: threads would have to meet where not all of them come (under a condition, or in a loop, that differs
// between threads). The kernel has no loops over virtual threads.
Result<std::unordered_set<const ir::StmtNode*>> place_barriers(const GpuKernel& kernel);

}  // namespace tensorsmith::codegen
