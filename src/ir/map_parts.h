// Common part of traversals that rewrite statements.
#pragma once

#include <functional>

#include "ir/stmt.h"

namespace tensorsmith::ir {

// Replaces each part of the statement by fn(part): bodies of loops and allocations, branches, the
// members of a sequence. Returns the same node if fn returns all parts unchanged. fn is never
// called with null.
Stmt map_parts(const Stmt& s, const std::function<Stmt(const Stmt&)>& fn);

}  // namespace tensorsmith::ir
