// Writes an operation's body for one place in the loop nest.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "lower/index.h"

namespace tensorsmith::lower {

// Values of variables; few, so searched in order.
using Bindings = std::vector<std::pair<const ir::VarNode*, Index>>;

class Rewriter {
 public:
  // Reads of buffer[indices] are written by load; the indices are already in terms of loop variables.
  using LoadWriter = std::function<ir::Expr(const ir::Load&, std::vector<Index>)>;
  Rewriter(IndexArena& arena, const Bindings& bindings, const LoadWriter& load)
      : arena_(arena), bindings_(bindings), load_(load) {}

  Index index(const ir::Expr& e);  // of a kI64 expression
  ir::Expr value(const ir::Expr& e);

 private:
  bool index_binary(const ir::Binary& n, Index* out);
  void assume(const ir::Expr& condition);
  ir::Expr rebuild(const ir::Expr& e);
  ir::Expr rebuild_binary(const ir::Expr& e, const ir::Binary& n);

  IndexArena& arena_;
  const Bindings& bindings_;
  const LoadWriter& load_;
};

}  // namespace tensorsmith::lower
