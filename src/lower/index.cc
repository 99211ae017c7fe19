#include "lower/index.h"

#include <algorithm>
#include <numeric>

#include "base/floor_div.h"

namespace tensorsmith::lower {

namespace {

__extension__ using Wide = __int128;

int64_t saturate(Wide v) {
  return static_cast<int64_t>(std::clamp<Wide>(v, -Range::kUnbounded, Range::kUnbounded));
}

Index combine(const Index& a, const Index& b, int64_t scale) {
  Index out;
  out.constant = a.constant + b.constant * scale;
  out.terms.reserve(a.terms.size() + b.terms.size());
  size_t i = 0;
  size_t j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    if (j == b.terms.size() || (i < a.terms.size() && a.terms[i].atom < b.terms[j].atom)) {
      out.terms.push_back(a.terms[i++]);
    } else if (i == a.terms.size() || b.terms[j].atom < a.terms[i].atom) {
      out.terms.push_back({b.terms[j].atom, b.terms[j].coefficient * scale});
      ++j;
    } else {
      const int64_t c = a.terms[i].coefficient + b.terms[j].coefficient * scale;
      if (c != 0) out.terms.push_back({a.terms[i].atom, c});
      ++i;
      ++j;
    }
  }
  return out;
}

}  // namespace

Index operator+(const Index& a, const Index& b) {
  if (b.terms.empty()) {
    Index out = a;
    out.constant += b.constant;
    return out;
  }
  return combine(a, b, 1);
}
Index operator-(const Index& a, const Index& b) { return combine(a, b, -1); }
Index operator*(const Index& a, int64_t factor) {
  if (factor == 0) return {};
  Index out = a;
  out.constant *= factor;
  for (Index::Term& t : out.terms) t.coefficient *= factor;
  return out;
}

void IndexArena::rollback(const Mark& mark) {
  atoms_.resize(mark.atoms);
  facts_.resize(mark.facts);
}

Index IndexArena::loop(const ir::Var& var, int64_t extent) {
  Atom atom;
  atom.range = {0, extent - 1};
  atom.expr = var;
  atoms_.push_back(std::move(atom));
  Index out;
  out.terms.push_back({static_cast<int32_t>(atoms_.size()) - 1, 1});
  return out;
}

Index IndexArena::opaque(const ir::Expr& e, Range range) {
  Atom atom;
  atom.kind = Kind::kOpaque;
  atom.range = range;
  atom.expr = e;
  atoms_.push_back(std::move(atom));
  Index out;
  out.terms.push_back({static_cast<int32_t>(atoms_.size()) - 1, 1});
  return out;
}

Index IndexArena::intern(Kind kind, const Index& a, const Index& b, int64_t c, Range range) {
  for (size_t k = atoms_.size(); k-- > 0;) {
    const Atom& atom = atoms_[k];
    if (atom.kind == kind && atom.c == c && atom.a == a && atom.b == b) {
      if (atom.range.low == atom.range.high) return atom.range.low;
      Index out;
      out.terms.push_back({static_cast<int32_t>(k), 1});
      return out;
    }
  }
  if (range.low == range.high) return range.low;
  Atom atom;
  atom.kind = kind;
  atom.range = range;
  atom.a = a;
  atom.b = b;
  atom.c = c;
  switch (kind) {
    case Kind::kDiv:
      atom.expr = ir::floordiv(to_expr(a), ir::Expr(c));
      break;
    case Kind::kMod:
      atom.expr = ir::floormod(to_expr(a), ir::Expr(c));
      break;
    case Kind::kMin:
      atom.expr = ir::min(to_expr(a), to_expr(b));
      break;
    case Kind::kMax:
      atom.expr = ir::max(to_expr(a), to_expr(b));
      break;
    case Kind::kLoop:
    case Kind::kOpaque:
      break;
  }
  atoms_.push_back(std::move(atom));
  Index out;
  out.terms.push_back({static_cast<int32_t>(atoms_.size()) - 1, 1});
  return out;
}

// A factor g of c such that a = g * multiple + rest with 0 <= rest < g in all cases; 1 if there is none.
int64_t IndexArena::split_factor(const Index& a, int64_t c, Index* multiple, Index* rest) const {
  int64_t all = c;
  for (const Index::Term& t : a.terms) all = std::gcd(all, t.coefficient);
  for (size_t k = 0; k <= a.terms.size(); ++k) {
    const int64_t g = k == 0 ? all : std::abs(a.terms[k - 1].coefficient);
    if (g <= 1 || c % g != 0) continue;
    *multiple = Index(floor_div(a.constant, g));
    *rest = Index(floor_mod(a.constant, g));
    for (const Index::Term& t : a.terms) {
      if (t.coefficient % g == 0) {
        multiple->terms.push_back({t.atom, t.coefficient / g});
      } else {
        rest->terms.push_back(t);
      }
    }
    const Range r = range(*rest);
    if (r.low >= 0 && r.high < g) return g;
  }
  return 1;
}

// With a = c * q + r: floordiv(a, c) = q + floordiv(r, c) and floormod(a, c) = floormod(r, c), where q
// collects the terms whose coefficients c divides. With r = g * x + y and 0 <= y < g: floordiv(r, g * d) =
// floordiv(x, d) and floormod(r, g * d) = g * floormod(x, d) + y. Example: (4 * i + j) // 8 = i // 2 for j
// < 4.
Index IndexArena::floordiv(const Index& a, int64_t c) {
  if (c == 1) return a;
  Index quotient(floor_div(a.constant, c));
  Index rest(floor_mod(a.constant, c));
  for (const Index::Term& t : a.terms) {
    if (t.coefficient % c == 0) {
      quotient.terms.push_back({t.atom, t.coefficient / c});
    } else {
      rest.terms.push_back(t);
    }
  }
  if (rest.is_constant()) return quotient;
  const Range r = range(rest);
  if (r.low >= 0 && r.high < c) return quotient;
  Index multiple;
  Index remainder;
  if (const int64_t g = split_factor(rest, c, &multiple, &remainder); g > 1) {
    return quotient + floordiv(multiple, c / g);
  }
  if (rest.constant == 0 && rest.terms.size() == 1 && rest.terms[0].coefficient == 1) {
    const Atom& atom = atoms_[static_cast<size_t>(rest.terms[0].atom)];
    const Index inner = atom.a;
    const int64_t d = atom.c;
    if (atom.kind == Kind::kDiv && d <= Range::kUnbounded / c) return quotient + floordiv(inner, d * c);
    if (atom.kind == Kind::kMod && d % c == 0) return quotient + floormod(floordiv(inner, c), d / c);
  }
  const Range q{r.low <= -Range::kUnbounded ? r.low : floor_div(r.low, c),
                r.high >= Range::kUnbounded ? r.high : floor_div(r.high, c)};
  return quotient + intern(Kind::kDiv, rest, {}, c, q);
}

Index IndexArena::floormod(const Index& a, int64_t c) {
  if (c == 1) return 0;
  Index rest(floor_mod(a.constant, c));
  for (const Index::Term& t : a.terms) {
    if (t.coefficient % c != 0) rest.terms.push_back(t);
  }
  if (rest.is_constant()) return rest;
  const Range r = range(rest);
  if (r.low >= 0 && r.high < c) return rest;
  Index multiple;
  Index remainder;
  if (const int64_t g = split_factor(rest, c, &multiple, &remainder); g > 1) {
    return floormod(multiple, c / g) * g + remainder;
  }
  if (rest.constant == 0 && rest.terms.size() == 1 && rest.terms[0].coefficient == 1) {
    const Atom& atom = atoms_[static_cast<size_t>(rest.terms[0].atom)];
    if (atom.kind == Kind::kMod && atom.c % c == 0) {
      const Index inner = atom.a;
      return floormod(inner, c);
    }
  }
  return intern(Kind::kMod, rest, {}, c, {0, c - 1});
}

Index IndexArena::minimum(const Index& a, const Index& b) {
  const Range d = range(a - b);
  if (d.high <= 0) return a;
  if (d.low >= 0) return b;
  const Range x = range(a);
  const Range y = range(b);
  return intern(Kind::kMin, a, b, 1, {std::min(x.low, y.low), std::min(x.high, y.high)});
}

Index IndexArena::maximum(const Index& a, const Index& b) {
  const Range d = range(a - b);
  if (d.low >= 0) return a;
  if (d.high <= 0) return b;
  const Range x = range(a);
  const Range y = range(b);
  return intern(Kind::kMax, a, b, 1, {std::max(x.low, y.low), std::max(x.high, y.high)});
}

// With a fact f <= 0 and c > 0: a <= a - c * f and a >= a + c * f; c is chosen so that a term cancels.
Range IndexArena::range(const Index& a) const {
  Range r = plain_range(a);
  for (const Index& f : facts_) {
    for (const Index::Term& t : a.terms) {
      const auto in_fact = std::find_if(f.terms.begin(), f.terms.end(),
                                        [&](const Index::Term& other) { return other.atom == t.atom; });
      if (in_fact == f.terms.end() || t.coefficient % in_fact->coefficient != 0) continue;
      const int64_t c = t.coefficient / in_fact->coefficient;
      const Range other = plain_range(a - f * c);
      if (c > 0) {
        r.high = std::min(r.high, other.high);
      } else {
        r.low = std::max(r.low, other.low);
      }
      break;
    }
  }
  return r;
}

Range IndexArena::plain_range(const Index& a) const {
  Wide low = a.constant;
  Wide high = a.constant;
  for (const Index::Term& t : a.terms) {
    const Range& r = atoms_[static_cast<size_t>(t.atom)].range;
    const Wide c = t.coefficient;
    low += c * (c > 0 ? r.low : r.high);
    high += c * (c > 0 ? r.high : r.low);
  }
  return {saturate(low), saturate(high)};
}

ir::Expr IndexArena::to_expr(const Index& a) const {
  if (a.terms.empty()) return a.constant;
  // Positive terms first, larger coefficients first, as the simplifier writes sums.
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
    const ir::Expr& atom = atoms_[static_cast<size_t>(terms[k].atom)].expr;
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
  const Range r = range(a);
  bool always = false;
  bool never = false;
  // Otherwise factor * a + offset < 0, or = or != 0.
  int64_t factor = 1;
  int64_t offset = 0;
  switch (op) {
    case ir::BinaryOp::kLt:
      always = r.high < 0;
      never = r.low >= 0;
      break;
    case ir::BinaryOp::kLe:
      always = r.high <= 0;
      never = r.low > 0;
      offset = -1;
      break;
    case ir::BinaryOp::kGt:
      always = r.low > 0;
      never = r.high <= 0;
      factor = -1;
      break;
    case ir::BinaryOp::kGe:
      always = r.low >= 0;
      never = r.high < 0;
      factor = -1;
      offset = -1;
      break;
    case ir::BinaryOp::kEq:
      always = r.low == 0 && r.high == 0;
      never = r.low > 0 || r.high < 0;
      break;
    case ir::BinaryOp::kNe:
      always = r.low > 0 || r.high < 0;
      never = r.low == 0 && r.high == 0;
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
  // As the simplifier writes comparisons: no negative coefficients.
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

IndexArena::Saved IndexArena::restrict_to(const Index& a, Range range) {
  if (a.terms.size() != 1 || a.terms[0].coefficient != 1) return {};
  Saved saved{a.terms[0].atom, atoms_[static_cast<size_t>(a.terms[0].atom)].range};
  Range& r = atoms_[static_cast<size_t>(saved.atom)].range;
  if (range.low > -Range::kUnbounded) r.low = std::max(r.low, range.low - a.constant);
  if (range.high < Range::kUnbounded) r.high = std::min(r.high, range.high - a.constant);
  return saved;
}

void IndexArena::restore(const Saved& saved) {
  if (saved.atom >= 0) atoms_[static_cast<size_t>(saved.atom)].range = saved.range;
}

Index IndexArena::resolve(const Index& a) const {
  Index out(a.constant);
  bool quotients = false;
  for (const Index::Term& t : a.terms) {
    const Atom& atom = atoms_[static_cast<size_t>(t.atom)];
    if (atom.range.low == atom.range.high) {
      out.constant += t.coefficient * atom.range.low;
    } else {
      out.terms.push_back(t);
      quotients = quotients || atom.kind == Kind::kDiv;
    }
  }
  // c * (x // c) + x % c = x
  for (size_t k = 0; quotients && k < out.terms.size(); ++k) {
    const Atom& div = atoms_[static_cast<size_t>(out.terms[k].atom)];
    if (div.kind != Kind::kDiv || out.terms[k].coefficient % div.c != 0) continue;
    const int64_t factor = out.terms[k].coefficient / div.c;
    for (size_t m = 0; m < out.terms.size(); ++m) {
      const Atom& mod = atoms_[static_cast<size_t>(out.terms[m].atom)];
      if (mod.kind != Kind::kMod || mod.c != div.c || out.terms[m].coefficient != factor || !(mod.a == div.a))
        continue;
      const Index whole = div.a * factor;
      out.terms.erase(out.terms.begin() + static_cast<std::ptrdiff_t>(std::max(k, m)));
      out.terms.erase(out.terms.begin() + static_cast<std::ptrdiff_t>(std::min(k, m)));
      return resolve(out + whole);
    }
  }
  return out;
}

Index IndexArena::less_than_zero(const Index& a) const {
  if (a.terms.size() != 1 || a.terms[0].coefficient != 1) return a;
  const Atom& atom = atoms_[static_cast<size_t>(a.terms[0].atom)];
  if (atom.kind != Kind::kDiv) return a;
  return less_than_zero(atom.a + a.constant * atom.c);
}

}  // namespace tensorsmith::lower
