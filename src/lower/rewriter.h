// Writes an operation's body for one place in the loop nest. What the body shares is written once and shared
// again.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "ir/expr_memo.h"
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

  // While the rewriter lives, the arena's facts and ranges change only by what it assumes itself.
  Index index(const ir::Expr& e);  // of a kI64 expression
  ir::Expr value(const ir::Expr& e);

 private:
  Index index_node(const ir::Expr& e);
  ir::Expr value_node(const ir::Expr& e);
  ir::Expr rebuild_select(const ir::Expr& e, const ir::Select& n);
  bool index_binary(const ir::Binary& n, Index* out);
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
  Results results_;  // under the facts of this place
};

}  // namespace tensorsmith::lower
