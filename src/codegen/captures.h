// Captures of a parallel loop's body: the variables and buffers that a separate function for the
// body needs from outside.
#pragma once

#include <vector>

#include "ir/stmt.h"

namespace tensorsmith::codegen {

// Variables and buffers that a loop's body uses, including those of loops and allocations inside
// the body. They are in order of first use, so that the program determines the layout of a closure.
struct Captures {
  std::vector<ir::Var> vars;
  std::vector<ir::Buffer> buffers;
};
Captures captures_of(const ir::Stmt& body);

}  // namespace tensorsmith::codegen
