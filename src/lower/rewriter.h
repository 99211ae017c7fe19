// Rewrites an operation's body for one place in the loop nest. Shared subexpressions are rewritten
// once and stay shared.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "ir/expr_memo.h"
#include "lower/index.h"

namespace tensorsmith::lower {

// Values of variables; there are few, so they are searched linearly.
using Bindings = std::vector<std::pair<const ir::VarNode*, Index>>;

class Rewriter {
 public:
  // `load` emits the reads of buffer[indices]; the indices are already expressed in loop variables.
  using LoadWriter = std::function<ir::Expr(const ir::Load&, std::vector<Index>)>;
  Rewriter(IndexArena& arena, const Bindings& bindings, const LoadWriter& load)
      : arena_(arena), bindings_(bindings), load_(load) {}

  // While the rewriter exists, only the rewriter itself may change the arena's facts and ranges.
  Index index(const ir::Expr& e);  // for a kI64 expression
  ir::Expr value(const ir::Expr& e);

 private:
  class Reader;  // turns expressions into indices
  ir::Expr value_node(const ir::Expr& e);
  ir::Expr rebuild_select(const ir::Expr& e, const ir::Select& n);
  void assume(const ir::Expr& condition);
  ir::Expr rebuild(const ir::Expr& e);
  bool is_unbounded_data(const ir::Expr& e);
  ir::Expr rebuild_binary(const ir::Expr& e, const ir::Binary& n);

  IndexArena& arena_;
  const Bindings& bindings_;
  const LoadWriter& load_;
  struct Results {
    ir::ExprMemo<Index> indices;
    ir::ExprMemo<ir::Expr> values;
  };
  Results results_;  // under the facts of the current place
};

}  // namespace tensorsmith::lower
