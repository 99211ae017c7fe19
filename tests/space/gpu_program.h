// Rules that every GPU program must keep so that threads can run it together (code generation adds
// the barriers around shared memory).
#pragma once

#include <string>
#include <vector>

#include "ir/stmt.h"

namespace tensorsmith::test {

// Returns an empty string if the program keeps the rules, else a description of a violation:
//  - loops of a kernel that are bound to the same axis have the same extent;
//  - all threads of a block reach a tensor in shared memory and each loop around it: no condition or
//    extent around it depends on a thread;
//  - such a tensor is the same whichever thread computes it: it depends on no thread loop around its
//    allocation.
std::string broken_gpu_rule(const ir::Program& program);

}  // namespace tensorsmith::test
