// Checks what every loop program must obey: variables used inside their loop and not bound again in it,
// buffers declared and of sane size, index counts and dtypes, constant extents where the loop kind asks for
// them, no write to an input, parallel and thread loops not inside vectorized ones. Place: the path of loops
// to the statement.
#pragma once

#include "ir/stmt.h"

namespace tensorsmith::ir {

Status verify(const Program& program);

// As verify, and proves each access in range: by the loops' extents and the conditions of enclosing branches
// and selects (each bound of an index by one linear condition at a time). An unproven access is an error of
// code kIllegal.
Status verify_in_bounds(const Program& program);

}  // namespace tensorsmith::ir
