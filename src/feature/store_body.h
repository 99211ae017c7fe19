// Bodies of operations, prepared for the features of many schedules: whatever the loops are, a sum
// of twenty reads has the same operations and the same reads. Only their indices must be examined
// again.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "feature/store_collector.h"
#include "sched/reads.h"

namespace tensorsmith::feature {

struct BodyPart;

// An expression, or one side of a select or division in it, as what its evaluation adds to the features.
struct Body {
  OpCounts ops;  // operations outside of `parts` and of the indices of reads
  std::vector<BodyPart> parts;
};

// Reads that are all evaluated, one after the other.
struct ReadRun {
  struct Tensor {
    const ir::BufferNode* buffer = nullptr;
    size_t reads = 0;
    std::vector<sched::Reads::IndexId> indices;  // the indices of each read, concatenated
  };
  std::vector<const ir::Load*> loads;
  std::vector<Tensor> tensors;  // in the order of their first reads
  std::vector<std::pair<sched::Reads::IndexId, int>>
      indices;  // the distinct ones, and how often each is evaluated
};

// A part whose effect depends on the loops.
struct BodyPart {
  enum class Kind : uint8_t {
    kReads,
    kSelect,     // `a` if the condition is known to hold, `b` if it is known not to hold, else both
    kIndex,      // an index expression used as a value
    kCondition,  // a condition used as a value
    kDivision,   // of a float by an integer that may turn out to be constant: `a` by `b`
  };
  Kind kind = Kind::kReads;
  ReadRun reads;
  const ir::Expr* expr = nullptr;  // the select, index, condition or division
  Body a, b;
};

// Bodies by expression, built when they are first requested.
class BodyCache {
 public:
  // Returns the effect of an expression of any dtype, except for the indices of its reads. `reads`:
  // those of the operation that the expression is a part of. The reference is valid as long as this
  // object, which keeps both alive.
  const Body& of(const ir::Expr& e, const std::shared_ptr<const sched::Reads>& reads);

 private:
  struct Entry {
    ir::Expr expr;
    std::shared_ptr<const sched::Reads> reads;
    Body body;
  };
  std::unordered_map<const ir::ExprNode*, std::vector<std::unique_ptr<const Entry>>> known_;
};

}  // namespace tensorsmith::feature
