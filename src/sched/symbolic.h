// Ranges [min, min + width) of index values, where min is an affine form over the loops outside a
// region and the width is a constant. All forms are in one arena that is made for one bound
// inference. There are no shared or reference-counted nodes, so the inference for a convolution
// takes a few microseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/affine.h"
#include "ir/expr.h"
#include "sched/schedule.h"

namespace tensorsmith::sched {

using Sym = ir::AffineSlice;  // terms in the arena

// The values min, min + 1, ..., min + width - 1.
struct SymRange {
  Sym min;
  int64_t width = 1;
};

// A loop whose variable occurs in the forms.
struct SymLoop {
  StageId stage;
  IteratorId iterator;
};
using SymLoopId = Id<SymLoop>;  // in the order of creation

struct SymAtom : ir::AffineAtom<Sym> {
  SymLoopId loop;  // kVariable
};

// Coefficients and constants beyond 2^60 set overflowed(); results are meaningless afterwards.
class SymArena : public ir::AffineArena<SymArena, SymAtom> {
 public:
  SymArena();
  void clear() {
    AffineArena::clear();
    loops_.clear();
    overflowed_ = false;
  }

  static SymRange point(Sym s) { return {s, 1}; }
  static SymRange full(int64_t extent) { return {constant(0), extent}; }

  // Returns the variable of a loop, with values in [0, extent); extent > 1.
  Sym loop(SymLoop loop, int64_t extent);

  using AffineArena::add, AffineArena::scale;
  SymRange add(SymRange a, SymRange b, int64_t factor = 1);  // a + factor * b
  SymRange scale(SymRange a, int64_t factor);
  // The result is exact if min's remainder is known, else an enclosure; c > 0.
  SymRange floordiv(SymRange a, int64_t c);
  SymRange floormod(SymRange a, int64_t c);
  SymRange minimum(SymRange a, SymRange b) { return extremum_of_ranges(true, a, b); }
  SymRange maximum(SymRange a, SymRange b) { return extremum_of_ranges(false, a, b); }
  // Returns the smallest range that is known to contain both.
  SymRange unite(SymRange a, SymRange b);
  // Returns an enclosure of the values of s while the loops in `inside` run.
  SymRange relax(Sym s, const IdVector<SymLoopId, char>& inside);
  SymRange relax(SymRange r, const IdVector<SymLoopId, char>& inside) {
    SymRange result = relax(r.min, inside);
    result.width += r.width - 1;
    return result;
  }

  // Returns a constant enclosure of s over all loops, computed term by term; within +-2^60.
  ir::Interval enclosure(Sym s) const {
    const ir::Interval r = range(s);
    return {std::max(r.min, -ir::kIndexLimit), std::min(r.max, ir::kIndexLimit)};
  }
  int64_t lowest(Sym s) const { return enclosure(s).min; }
  int64_t highest(Sym s) const { return enclosure(s).max; }
  // Bounds as above, but tighter if minima and maxima occur together with their operands: max(x -
  // 1, 0) - x is in [-1, 0].
  int64_t tight_lowest(Sym s) { return -tight_highest(scale(s, -1)); }
  int64_t tight_highest(Sym s, int depth = 0);
  bool overflowed() const { return overflowed_; }
  void clear_overflow() { overflowed_ = false; }

  const IdVector<SymLoopId, SymLoop>& loops() const { return loops_; }

  // Returns the form as an expression over the loops' variables.
  ir::Expr to_expr(Sym s, const IdVector<StageId, IdVector<IteratorId, ir::Var>>& vars) const;

  int64_t multiply_add(int64_t a, int64_t b, int64_t factor) {
    return ir::checked_multiply_add(a, b, factor, &overflowed_);
  }

 private:
  __extension__ using int128_t = __int128;
  int64_t checked(int128_t value);
  SymRange extremum_of_ranges(bool is_minimum, SymRange a, SymRange b);

  IdVector<SymLoopId, SymLoop> loops_;
  bool overflowed_ = false;
};

}  // namespace tensorsmith::sched
