// Ranges [min, min + width) of index values, where min is an affine form over the loops outside a region and
// the width is a constant. Everything lives in one arena that is made for one bound inference: no node is
// shared or counted, so a whole convolution takes a few microseconds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/expr.h"

namespace tensorsmith::sched {

// constant + sum(coefficient * atom), terms sorted by atom, no zero coefficient; the terms are
// SymArena::terms[begin, begin + count).
struct Sym {
  int64_t constant = 0;
  uint32_t begin = 0;
  uint32_t count = 0;
  bool is_constant() const { return count == 0; }
};

// The values min, min + 1, ..., min + width - 1.
struct SymRange {
  Sym min;
  int64_t width = 1;
};

class SymArena {
 public:
  SymArena();
  void clear() {
    atoms_.clear();
    terms_.clear();
    loops_.clear();
    overflowed_ = false;
  }

  static Sym constant(int64_t value) { return {value, 0, 0}; }
  static SymRange point(Sym s) { return {s, 1}; }
  static SymRange full(int64_t extent) { return {constant(0), extent}; }

  // A loop variable in [0, extent); extent > 1.
  Sym loop(int stage, int iterator, int64_t extent);

  // All of these wrap nothing: a value beyond 2^60 sets overflowed(), after which results are meaningless.
  Sym add(Sym a, Sym b);
  Sym scale(Sym a, int64_t factor);
  SymRange add(SymRange a, SymRange b);
  SymRange scale(SymRange a, int64_t factor);
  // Exact where min's remainder is known, else an enclosure; c > 0.
  SymRange floordiv(SymRange a, int64_t c);
  SymRange floormod(SymRange a, int64_t c);
  SymRange minimum(SymRange a, SymRange b);
  SymRange maximum(SymRange a, SymRange b);
  // The smallest range known to hold both.
  SymRange unite(SymRange a, SymRange b);
  // All values while the loops inside (by loop_index) run: enclosure of s.
  SymRange relax(Sym s, const std::vector<char>& inside);
  SymRange relax(SymRange r, const std::vector<char>& inside) {
    SymRange result = relax(r.min, inside);
    result.width += r.width - 1;
    return result;
  }

  // Constant enclosure of s over all loops, atom by atom.
  int64_t lowest(Sym s) const;
  int64_t highest(Sym s) const;
  // The same, tighter where minima and maxima occur beside their operands: max(x - 1, 0) - x is in [-1, 0].
  int64_t tight_lowest(Sym s) { return -tight_highest(scale(s, -1)); }
  int64_t tight_highest(Sym s, int depth = 0);
  bool overflowed() const { return overflowed_; }
  void clear_overflow() { overflowed_ = false; }

  // Index of a loop atom for relax(): loops are numbered in the order of creation.
  size_t num_loops() const { return loops_.size(); }
  struct LoopAtom {
    int stage, iterator, atom;
  };
  const LoopAtom& loop_at(size_t i) const { return loops_[i]; }

  // As an expression over the variables by stage and iterator.
  ir::Expr to_expr(Sym s, const std::vector<std::vector<ir::Var>>& vars) const;

  enum class AtomKind : uint8_t { kLoop, kFloorDiv, kFloorMod, kMin, kMax };
  struct Atom {
    AtomKind kind = AtomKind::kLoop;
    Sym a, b;         // operands; kLoop: none
    int64_t c = 1;    // divisor
    int64_t low = 0;  // constant enclosure
    int64_t high = 0;
    int loop = -1;  // kLoop: index into loops_
  };
  struct Term {
    int32_t atom = 0;
    int64_t coefficient = 0;
  };
  std::span<const Term> terms(const Sym& s) const { return {terms_.data() + s.begin, s.count}; }
  const Atom& atom(const Term& term) const { return atoms_[static_cast<size_t>(term.atom)]; }

 private:
  __extension__ using int128_t = __int128;
  int64_t checked(int128_t value);
  bool equal(Sym a, Sym b) const;
  Sym intern(Atom atom);  // as a Sym of one term; reuses an equal atom
  // s = c * quotient + rest; the rest holds the terms that are no multiples of c and a constant in [0, c).
  void divide(Sym s, int64_t c, Sym* quotient, Sym* rest);
  // The greatest g such that every term of s is a multiple of g, starting from g.
  int64_t gcd_of_terms(Sym s, int64_t g) const;

  std::vector<Atom> atoms_;
  std::vector<Term> terms_;
  std::vector<LoopAtom> loops_;
  bool overflowed_ = false;
};

}  // namespace tensorsmith::sched
