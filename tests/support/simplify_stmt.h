// Simplification of all expressions of a program, which shows whether ir::simplify keeps the program's results.
#pragma once

#include "ir/bounds.h"
#include "ir/stmt.h"

namespace tensorsmith::test {

// Simplifies every expression within the ranges of the enclosing loops. Removes loops of extent 1
// (substituting 0) and of extent 0, decided branches, and empty sequences. Keeps loops of kind
// kThread. May return null for a program without effect.
ir::Stmt simplify(const ir::Stmt& s);

}  // namespace tensorsmith::test
