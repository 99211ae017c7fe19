// Results of one walk over an expression, by node. Expressions are graphs: y = x * sigmoid(x), forty times
// over, is 160 nodes and a tree of 2^40. A walk that remembers what it did for a node costs what the graph
// costs.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace tensorsmith::ir {

// Whether a walk should remember e: it may come again, and is more than a leaf.
inline bool worth_remembering(const Expr& e) {
  return e.is_shared() && as<VarRef>(e) == nullptr && as<IntImm>(e) == nullptr && as<FloatImm>(e) == nullptr;
}

// What is remembered after mark() is forgotten by rollback(mark), for results that hold only in some scope
// (under a condition, in a basic block). Keeps the nodes alive, so that none is mistaken for another at the
// same address.
template <class T>
class ExprMemo {
 public:
  // The result for e, or null.
  const T* find(const Expr& e) const {
    if (results_.empty() || !e.is_shared()) return nullptr;
    const auto it = results_.find(e.get());
    return it == results_.end() ? nullptr : &it->second;
  }
  // Does nothing if e will not come again or has a result.
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
