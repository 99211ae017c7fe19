// What every program for a GPU keeps, so that threads can run it together (barriers around shared memory are
// code generation's).
#pragma once

#include <string>
#include <vector>

#include "ir/stmt.h"

namespace tensorsmith::test {

// Empty if the program keeps the rules, else what breaks one:
//  - loops of a kernel that are bound to the same axis have the same extent;
//  - a tensor in shared memory, and a loop around it, is reached by all threads of a block: no condition or
//    extent around it depends on a thread;
//  - it is the same whichever thread computes it: it depends on no thread loop around its allocation.
std::string broken_gpu_rule(const ir::Program& program);

}  // namespace tensorsmith::test
