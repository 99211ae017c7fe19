// What the body of a parallel loop uses: a function of its own needs it from outside.
#pragma once

#include <vector>

#include "ir/stmt.h"

namespace tensorsmith::codegen {

// Variables and buffers of a loop's body, its own and those of loops and allocations inside included, in the order of
// first use, so that a closure's layout follows from the program.
struct Captures {
  std::vector<ir::Var> vars;
  std::vector<ir::Buffer> buffers;
};
Captures captures_of(const ir::Stmt& body);

}  // namespace tensorsmith::codegen
