// Checks what every loop program must obey: variables bound once and used inside their loop, buffers
// declared, index counts and dtypes, constant extents where the loop kind asks for them, no write to an
// input, parallel loops not inside vectorized ones. Place: the path of loops to the statement.
#pragma once

#include "ir/stmt.h"

namespace tensorsmith::ir {

Status verify(const Program& program);

// As verify, and proves each access in range (a guard by the enclosing conditions counts). An unproven access
// is an error of code kIllegal.
Status verify_in_bounds(const Program& program);

}  // namespace tensorsmith::ir
