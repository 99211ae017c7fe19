// Index arithmetic while loops are being generated: sums over loop variables whose ranges are known at this
// place. Lowering decides guards and cuts loops with it, and writes expressions out already simplified.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace tensorsmith::lower {

// constant + sum(coefficient * atom), terms sorted by atom, no zero coefficient.
struct Index {
  struct Term {
    int32_t atom = 0;
    int64_t coefficient = 0;
    friend bool operator==(const Term&, const Term&) = default;
  };
  int64_t constant = 0;
  std::vector<Term> terms;

  Index() = default;
  Index(int64_t value) : constant(value) {}  // NOLINT(google-explicit-constructor)
  bool is_constant() const { return terms.empty(); }
  friend bool operator==(const Index&, const Index&) = default;
};

Index operator+(const Index& a, const Index& b);
Index operator-(const Index& a, const Index& b);
Index operator*(const Index& a, int64_t factor);

// Closed interval; beyond +-kUnbounded nothing is known.
struct Range {
  static constexpr int64_t kUnbounded = int64_t{1} << 60;
  int64_t low = -kUnbounded;
  int64_t high = kUnbounded;
};

// The atoms: loop variables, and quotients, remainders, minima, maxima of sums, and expressions that nothing
// is known about. Equal ones are one atom as long as scopes last.
class IndexArena {
 public:
  // Atoms made and facts learnt after mark() are forgotten by rollback(mark). Indices that contain such atoms
  // must not be used any more.
  struct Mark {
    size_t atoms = 0, facts = 0;
  };
  Mark mark() const { return {atoms_.size(), facts_.size()}; }
  void rollback(const Mark& mark);

  Index loop(const ir::Var& var, int64_t extent);
  Index opaque(const ir::Expr& e, Range range = {});
  Index floordiv(const Index& a, int64_t divisor);  // divisor > 0
  Index floormod(const Index& a, int64_t divisor);
  Index minimum(const Index& a, const Index& b);
  Index maximum(const Index& a, const Index& b);

  Range range(const Index& a) const;
  ir::Expr to_expr(const Index& a) const;
  // a op 0 for a comparison; terms are spread over both sides so that no coefficient is negative. Decided
  // ones become constants.
  ir::Expr compare(ir::BinaryOp op, const Index& a) const;

  // Narrows what is known about an index of the form atom + constant for the rest of a scope; without effect
  // on other forms. Restore with the returned state. Atoms that depend on it keep what they were made with,
  // so make them inside the scope and roll back at its end.
  struct Saved {
    int32_t atom = -1;
    Range range;
  };
  Saved restrict_to(const Index& a, Range range);
  void restore(const Saved& saved);
  // a <= 0 from here on.
  void learn_not_positive(const Index& a) {
    if (!a.is_constant()) facts_.push_back(a);
  }
  // Replaces atoms known to have one value by it.
  Index resolve(const Index& a) const;
  // An index that is below 0 if and only if a is; x // c - k gives x - k * c.
  Index less_than_zero(const Index& a) const;

 private:
  enum class Kind : uint8_t { kLoop, kOpaque, kDiv, kMod, kMin, kMax };
  struct Atom {
    Kind kind = Kind::kLoop;
    Range range;
    ir::Expr expr;
    Index a, b;  // operands
    int64_t c = 1;
  };
  Range plain_range(const Index& a) const;
  int64_t split_factor(const Index& a, int64_t c, Index* multiple, Index* rest) const;
  Index intern(Kind kind, const Index& a, const Index& b, int64_t c, Range range);

  std::vector<Atom> atoms_;
  std::vector<Index> facts_;  // each is <= 0
};

}  // namespace tensorsmith::lower
