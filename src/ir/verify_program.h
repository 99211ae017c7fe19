// Checks the rules for loop programs: variables are used inside their loop and not bound again in
// it, buffers are declared and of reasonable size, index counts and dtypes match, extents are
// constant if the loop kind requires it, inputs are not written, and parallel and thread loops are
// not inside vectorized ones. The error's place is the path of loops to the statement.
#pragma once

#include "ir/stmt.h"

namespace tensorsmith::ir {

Status verify(const Program& program);

// Checks as verify does, and proves that each access is in range, using the loops' extents and the
// conditions of enclosing branches and selects (each bound of an index by one linear condition at a
// time). An access that cannot be proven is an error of code kIllegal.
Status verify_in_bounds(const Program& program);

}  // namespace tensorsmith::ir
