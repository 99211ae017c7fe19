// The reads of an operation, which are found once and shared by all schedules that contain the
// operation.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/id.h"
#include "ir/affine_sum.h"
#include "ir/workload.h"

namespace tensorsmith::sched {

// Returns the number of the axis with this variable: spatial axes are counted first, then reduce axes.
std::optional<size_t> axis_number(const ir::Operation& op, const ir::Var& var);

class Reads {
 public:
  // An index expression. Loads often share index expressions: in X[n, c, h + r, w] for r = 0..5,
  // only one of the four differs. Equal expressions in the same dimension of the same tensor have
  // the same id.
  struct Index {
    const ir::Expr* expr = nullptr;
    // The expression as a sum of axes (by number: spatial, then reduce), in the order of
    // appearance; empty if it is no such sum.
    std::optional<ir::AffineSum<size_t>> sum;
  };
  using IndexId = Id<Index>;
  struct Use {
    size_t dim = 0;
    IndexId index;
  };
  struct Tensor {
    const ir::BufferNode* buffer = nullptr;
    std::vector<Use> uses;  // distinct uses, in the order of their first occurrence
  };

  explicit Reads(const ir::Operation& op);

  // Every load in the operation's bodies, in pre-order; the pointers are valid as long as the
  // operation.
  const std::vector<const ir::Load*>& loads() const { return loads_; }
  const IdVector<IndexId, Index>& indices() const { return indices_; }
  // The tensors read, in the order of their first loads.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  bool has(const ir::BufferNode* buffer) const;
  // Returns the indices of one of loads(), one per dimension; may be null for a scalar.
  const IndexId* indices_of(const ir::Load* load) const;

 private:
  IndexId intern(const ir::Operation& op, Tensor& tensor, size_t dim, const ir::Expr& index);

  std::vector<const ir::Load*> loads_;
  std::vector<std::pair<const ir::Load*, size_t>> first_;  // sorted by address, with the position of the
                                                           // load's indices in used_
  std::vector<IndexId> used_;
  IdVector<IndexId, Index> indices_;
  std::vector<Tensor> tensors_;
};

}  // namespace tensorsmith::sched
