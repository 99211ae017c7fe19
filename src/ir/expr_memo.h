// Memoizes the results of a traversal of an expression, by node. Expressions are graphs: y = x *
// sigmoid(x), applied forty times, has 160 nodes, but is a tree of 2^40. A traversal that remembers
// the result of each node takes time linear in the graph.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace tensorsmith::ir {

// Returns whether a traversal should remember e: e may be reached again and is not a leaf.
inline bool worth_remembering(const Expr& e) {
  return e.is_shared() && as<VarRef>(e) == nullptr && as<IntImm>(e) == nullptr && as<FloatImm>(e) == nullptr;
}

// rollback(mark) forgets everything remembered since mark(), for results that are valid only in
// some scope (under a condition, in a basic block). The memo keeps the nodes alive, so that no new
// node gets the address of an old one.
template <class T>
class ExprMemo {
 public:
  // Returns the result for e, or null.
  const T* find(const Expr& e) const {
    if (results_.empty() || !e.is_shared()) return nullptr;
    const auto it = results_.find(e.get());
    return it == results_.end() ? nullptr : &it->second;
  }
  // Does nothing if e cannot be reached again or has a result.
  void remember(const Expr& e, T result) {
    if (worth_remembering(e) && results_.emplace(e.get(), std::move(result)).second) order_.push_back(e);
  }

  size_t mark() const { return order_.size(); }
  void rollback(size_t mark) {
    while (order_.size() > mark) {
      results_.erase(order_.back().get());
      order_.pop_back();
    }
  }
  void clear() {
    results_.clear();
    order_.clear();
  }

 private:
  std::unordered_map<const ExprNode*, T> results_;
  std::vector<Expr> order_;
};

}  // namespace tensorsmith::ir
