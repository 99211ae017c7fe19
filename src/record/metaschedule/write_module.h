// Writes a workload as a module of TVM's TIR, with a block for each operation: the inverse of
// read_tir_module().
#pragma once

#include <string>

#include "base/result.h"
#include "ir/workload.h"

namespace tensorsmith::record {

// Returns the node graph that TVM 0.27 loads as a module. Its function "main" takes the inputs in
// their order, then the outputs; the blocks are named like the operations. kUnsupported with the
// operation: reductions of two values, an output that is an input, instructions that TVM has no
// function for, unsigned constants beyond 63 bits.
Result<std::string> write_tir_module(const ir::Workload& workload);

}  // namespace tensorsmith::record
