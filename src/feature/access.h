// The indices of a store's buffer accesses in a form that is cheap to ask about: which loops they use, with
// which coefficients, and the region they touch while some of the loops run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/expr.h"

namespace tensorsmith::feature {

// A loop around the statement at hand. Loops are numbered from the outermost, at most 64.
struct LoopRange {
  const ir::VarNode* var = nullptr;
  int64_t extent = 1;
};

struct ValueRange {
  int64_t min = 0, max = 0;
};
inline constexpr int64_t kUnknownBound = int64_t{1} << 60;  // magnitude from which a bound means "unknown"

// Enclosure of an integer expression while loops [level, loops.size()) run and the outer ones stand at 0.
// Interval arithmetic node by node, as TVM's const_int_bound.
ValueRange range_of(const ir::Expr& e, std::span<const LoopRange> loops, size_t level);

// The indices of all accesses of one store, reused from store to store.
class IndexTable {
 public:
  void reset(std::span<const LoopRange> loops);

  // Adds the index tuple of an access; returns the number of the tuple.
  size_t add(const std::vector<ir::Expr>& indices, const std::vector<int64_t>& shape);

  // Bit l: some index of the tuple uses loop l.
  uint64_t loops_used(size_t tuple) const { return tuples_[tuple].loops_used; }
  // Memory distance, in elements, of one step of the loop; 0 if the loop is not used. strides: of the buffer.
  int64_t stride(size_t tuple, size_t loop, std::span<const int64_t> strides) const;

  // Lets loop `level` run too (levels are entered from the innermost outwards).
  void enter_level(size_t level);
  // Ranges of the tuple's indices with the loops entered so far.
  std::span<const ValueRange> ranges(size_t tuple) const {
    return {ranges_.data() + tuples_[tuple].first, tuples_[tuple].count};
  }

 private:
  // index = sum over loops of coefficient * variable + sum of scale * atom + constant (in the initial range).
  struct Atom {
    const ir::Expr* expr;
    int64_t scale;
    uint64_t loops_used;
    ValueRange range;  // scaled, as included in the index's range
  };
  struct Index {
    const ir::Expr* expr;
    int64_t extent;  // of the buffer's dimension
    uint64_t loops_used = 0;
    size_t first_atom = 0, atom_count = 0;
  };
  struct Tuple {
    size_t first = 0, count = 0;
    uint64_t loops_used = 0;
  };
  void add_terms(const ir::Expr& e, int64_t scale, size_t index);
  uint64_t loops_in(const ir::Expr& e) const;
  int64_t coefficient_guess(const ir::Expr& e, const ir::VarNode* var) const;

  std::span<const LoopRange> loops_;
  std::vector<Tuple> tuples_;
  std::vector<Index> indices_;
  std::vector<ValueRange> ranges_;
  std::vector<int64_t> coefficients_;  // index * loops_.size() + loop
  std::vector<Atom> atoms_;
};

}  // namespace tensorsmith::feature
