// What walks that rewrite statements have in common.
#pragma once

#include <functional>

#include "ir/stmt.h"

namespace tensorsmith::ir {

// The statement with fn of each part in the part's place: bodies of loops and allocations, branches, the members of a
// sequence. The same node if fn gives all parts back. fn sees no null.
Stmt map_parts(const Stmt& s, const std::function<Stmt(const Stmt&)>& fn);

}  // namespace tensorsmith::ir
