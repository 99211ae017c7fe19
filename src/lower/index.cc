#include "lower/index.h"

#include <algorithm>
#include <numeric>

#include "base/floor_div.h"

namespace tensorsmith::lower {

using ir::AffineKind;
using ir::Interval;

void IndexArena::rollback(const Mark& mark) {
  atoms_.resize(mark.atoms);
  facts_.resize(mark.facts);
}

Index IndexArena::loop(const ir::Var& var, int64_t extent) {
  IndexAtom atom;
  atom.range = {0, extent - 1};
  atom.expr = var;
  return of_atom(std::move(atom));
}

Index IndexArena::opaque(const ir::Expr& e, Interval range) {
  IndexAtom atom;
  atom.kind = AffineKind::kOpaque;
  atom.range = range;
  atom.expr = e;
  return of_atom(std::move(atom));
}

Index IndexArena::intern(AffineKind kind, const Index& a, const Index& b, int64_t c, const Interval& range) {
  return range.min == range.max ? Index(range.min) : AffineValues::intern(kind, a, b, c, range);
}

Index IndexArena::known(size_t atom, const Interval&) {
  const Interval& range = atoms_[atom].range;
  return range.min == range.max ? Index(range.min) : single(atom);
}

void IndexArena::describe(IndexAtom& atom) const {
  switch (atom.kind) {
    case AffineKind::kFloorDiv:
      atom.expr = ir::floordiv(to_expr(atom.a), ir::Expr(atom.c));
      break;
    case AffineKind::kFloorMod:
      atom.expr = ir::floormod(to_expr(atom.a), ir::Expr(atom.c));
      break;
    case AffineKind::kMin:
      atom.expr = ir::min(to_expr(atom.a), to_expr(atom.b));
      break;
    case AffineKind::kMax:
      atom.expr = ir::max(to_expr(atom.a), to_expr(atom.b));
      break;
    case AffineKind::kVariable:
    case AffineKind::kEither:
    case AffineKind::kOpaque:
      break;
  }
}

// For a fact f <= 0 and c > 0: a <= a - c * f and a >= a + c * f, where c is chosen so that a term
// cancels.
Interval IndexArena::range(const Index& a) const {
  Interval r = AffineValues::range(a);
  for (const Index& f : facts_) {
    for (const Index::Term& t : a.terms) {
      const auto in_fact = std::find_if(f.terms.begin(), f.terms.end(),
                                        [&](const Index::Term& other) { return other.atom == t.atom; });
      if (in_fact == f.terms.end() || t.coefficient % in_fact->coefficient != 0) continue;
      const int64_t c = t.coefficient / in_fact->coefficient;
      const Interval other = AffineValues::range(a - f * c);
      if (c > 0) {
        r.max = std::min(r.max, other.max);
      } else {
        r.min = std::max(r.min, other.min);
      }
      break;
    }
  }
  return r;
}

ir::Expr IndexArena::to_expr(const Index& a) const {
  if (a.terms.empty()) return a.constant;
  // Positive terms first, then larger coefficients first, as the simplifier orders sums.
  const auto& terms = a.terms;
  std::vector<uint32_t> order(terms.size());
  std::iota(order.begin(), order.end(), 0U);
  if (terms.size() > 1) {
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t x, uint32_t y) { return terms[x].coefficient > terms[y].coefficient; });
  }
  const bool constant_first = a.constant != 0 && terms[order[0]].coefficient < 0;
  ir::Expr sum;
  if (constant_first) sum = a.constant;
  for (const uint32_t k : order) {
    const ir::Expr& atom = at(terms[k].atom).expr;
    const int64_t c = terms[k].coefficient;
    if (!sum.defined()) {
      sum = c == 1 ? atom : c == -1 ? -atom : atom * ir::Expr(c);
    } else if (c > 0) {
      sum = sum + (c == 1 ? atom : atom * ir::Expr(c));
    } else {
      sum = sum - (c == -1 ? atom : atom * ir::Expr(-c));
    }
  }
  if (constant_first || a.constant == 0) return sum;
  return a.constant > 0 ? sum + ir::Expr(a.constant) : sum - ir::Expr(-a.constant);
}

ir::Expr IndexArena::compare(ir::BinaryOp op, const Index& a) const {
  const Interval r = range(a);
  bool always = false;
  bool never = false;
  // Undecided comparisons become factor * a + offset < 0 (or == 0, or != 0).
  int64_t factor = 1;
  int64_t offset = 0;
  switch (op) {
    case ir::BinaryOp::kLt:
      always = r.max < 0;
      never = r.min >= 0;
      break;
    case ir::BinaryOp::kLe:
      always = r.max <= 0;
      never = r.min > 0;
      offset = -1;
      break;
    case ir::BinaryOp::kGt:
      always = r.min > 0;
      never = r.max <= 0;
      factor = -1;
      break;
    case ir::BinaryOp::kGe:
      always = r.min >= 0;
      never = r.max < 0;
      factor = -1;
      offset = -1;
      break;
    case ir::BinaryOp::kEq:
      always = r.min == 0 && r.max == 0;
      never = r.min > 0 || r.max < 0;
      break;
    case ir::BinaryOp::kNe:
      always = r.min > 0 || r.max < 0;
      never = r.min == 0 && r.max == 0;
      break;
    case ir::BinaryOp::kAdd:
    case ir::BinaryOp::kSub:
    case ir::BinaryOp::kMul:
    case ir::BinaryOp::kDiv:
    case ir::BinaryOp::kFloorDiv:
    case ir::BinaryOp::kFloorMod:
    case ir::BinaryOp::kMin:
    case ir::BinaryOp::kMax:
    case ir::BinaryOp::kAnd:
    case ir::BinaryOp::kOr:
    case ir::BinaryOp::kBitAnd:
    case ir::BinaryOp::kBitOr:
    case ir::BinaryOp::kBitXor:
    case ir::BinaryOp::kShl:
    case ir::BinaryOp::kShr:
      TS_CHECK(false, "not a comparison");
  }
  if (always || never) return ir::bool_imm(always);
  Index d = a * factor + offset;
  const bool equality = op == ir::BinaryOp::kEq || op == ir::BinaryOp::kNe;
  if (!equality) {
    if (factor == 1) d = less_than_zero(d);
    int64_t g = 0;
    for (const Index::Term& t : d.terms) g = std::gcd(g, t.coefficient);
    if (g > 1) {
      for (Index::Term& t : d.terms) t.coefficient /= g;
      d.constant = floor_div(d.constant, g);
    }
  }
  // Moves negative terms to the other side, as the simplifier does: no coefficient is negative.
  Index left;
  Index right;
  for (const Index::Term& t : d.terms) {
    if (t.coefficient > 0) {
      left.terms.push_back(t);
    } else {
      right.terms.push_back({t.atom, -t.coefficient});
    }
  }
  (left.terms.empty() ? left : right).constant = left.terms.empty() ? d.constant : -d.constant;
  return ir::binary(equality ? op : ir::BinaryOp::kLt, to_expr(left), to_expr(right));
}

IndexArena::Saved IndexArena::restrict_to(const Index& a, Interval range) {
  if (a.terms.size() != 1 || a.terms[0].coefficient != 1) return {};
  Saved saved{a.terms[0].atom, at(a.terms[0].atom).range};
  Interval& r = at(saved.atom).range;
  if (range.min != Interval::kNegInf) r.min = std::max(r.min, range.min - a.constant);
  if (range.max != Interval::kPosInf) r.max = std::min(r.max, range.max - a.constant);
  return saved;
}

void IndexArena::restore(const Saved& saved) {
  if (saved.atom >= 0) at(saved.atom).range = saved.range;
}

Index IndexArena::resolve(const Index& a) {
  Index out(a.constant);
  bool quotients = false;
  for (const Index::Term& t : a.terms) {
    const IndexAtom& atom = this->atom(t);
    if (atom.range.min == atom.range.max) {
      out.constant += t.coefficient * atom.range.min;
    } else {
      out.terms.push_back(t);
      quotients = quotients || atom.kind == AffineKind::kFloorDiv;
    }
  }
  if (!quotients) return out;
  const Index joined = recombined(out);
  return joined == out ? out : resolve(joined);
}

Index IndexArena::less_than_zero(const Index& a) const {
  if (a.terms.size() != 1 || a.terms[0].coefficient != 1) return a;
  const IndexAtom& atom = this->atom(a.terms[0]);
  if (atom.kind != AffineKind::kFloorDiv) return a;
  return less_than_zero(atom.a + a.constant * atom.c);
}

}  // namespace tensorsmith::lower
