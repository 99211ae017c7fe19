#include "lower/index.h"

#include <algorithm>
#include <numeric>

namespace tensorsmith::lower {

namespace {

__extension__ using Wide = __int128;

int64_t saturate(Wide v) {
  return static_cast<int64_t>(std::clamp<Wide>(v, -Range::kUnbounded, Range::kUnbounded));
}
int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return q - static_cast<int64_t>(a % b < 0);
}
int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

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

void IndexArena::rollback(size_t mark) { atoms_.resize(mark); }

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

// With a = c * q + r: floordiv(a, c) = q + floordiv(r, c) and floormod(a, c) = floormod(r, c), where q
// collects the terms whose coefficients c divides. If g divides c and all coefficients of r, what is left of
// r's constant modulo g does not matter: floordiv(g * x + y, g * d) = floordiv(x, d) for 0 <= y < g.
Index IndexArena::floordiv(const Index& a, int64_t c) {
  if (c == 1) return a;
  Index quotient(floor_div(a.constant, c));
  Index rest(floor_mod(a.constant, c));
  int64_t g = c;
  for (const Index::Term& t : a.terms) {
    if (t.coefficient % c == 0) {
      quotient.terms.push_back({t.atom, t.coefficient / c});
    } else {
      rest.terms.push_back(t);
      g = std::gcd(g, t.coefficient);
    }
  }
  if (rest.is_constant()) return quotient;
  if (g > 1) {
    for (Index::Term& t : rest.terms) t.coefficient /= g;
    rest.constant = floor_div(rest.constant, g);
    c /= g;
    if (c == 1) return quotient + rest;
  }
  const Range r = range(rest);
  if (r.low >= 0 && r.high < c) return quotient;
  if (rest.constant == 0 && rest.terms.size() == 1 && rest.terms[0].coefficient == 1) {
    const Atom& atom = atoms_[static_cast<size_t>(rest.terms[0].atom)];
    if (atom.kind == Kind::kDiv && atom.c <= Range::kUnbounded / c) {
      const Index inner = atom.a;
      return quotient + floordiv(inner, atom.c * c);
    }
  }
  const Range q{r.low <= -Range::kUnbounded ? r.low : floor_div(r.low, c),
                r.high >= Range::kUnbounded ? r.high : floor_div(r.high, c)};
  return quotient + intern(Kind::kDiv, rest, {}, c, q);
}

Index IndexArena::floormod(const Index& a, int64_t c) {
  if (c == 1) return 0;
  Index rest(floor_mod(a.constant, c));
  int64_t g = c;
  for (const Index::Term& t : a.terms) {
    if (t.coefficient % c != 0) {
      rest.terms.push_back(t);
      g = std::gcd(g, t.coefficient);
    }
  }
  if (rest.is_constant()) return rest;
  const Range r = range(rest);
  if (r.low >= 0 && r.high < c) return rest;
  if (g > 1) {
    // mod(g * x + y, g * d) = g * mod(x, d) + y
    const int64_t y = floor_mod(rest.constant, g);
    for (Index::Term& t : rest.terms) t.coefficient /= g;
    rest.constant = (rest.constant - y) / g;
    return floormod(rest, c / g) * g + y;
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

Range IndexArena::range(const Index& a) const {
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
  ir::Expr sum;
  for (const uint32_t k : order) {
    const ir::Expr& atom = atoms_[static_cast<size_t>(terms[k].atom)].expr;
    const int64_t c = terms[k].coefficient;
    if (!sum.defined()) {
      sum = c == 1 ? atom : atom * ir::Expr(c);
    } else if (c > 0) {
      sum = sum + (c == 1 ? atom : atom * ir::Expr(c));
    } else {
      sum = sum - (c == -1 ? atom : atom * ir::Expr(-c));
    }
  }
  if (a.constant > 0) return sum + ir::Expr(a.constant);
  if (a.constant < 0) return sum - ir::Expr(-a.constant);
  return sum;
}

ir::Expr IndexArena::compare(ir::BinaryOp op, const Index& a) const {
  const Range r = range(a);
  const auto decided = [&](bool always, bool never, ir::Expr* out) {
    if (always || never) *out = ir::bool_imm(always);
    return always || never;
  };
  ir::Expr constant;
  bool done = false;
  switch (op) {
    case ir::BinaryOp::kLt:
      done = decided(r.high < 0, r.low >= 0, &constant);
      break;
    case ir::BinaryOp::kLe:
      done = decided(r.high <= 0, r.low > 0, &constant);
      break;
    case ir::BinaryOp::kGt:
      done = decided(r.low > 0, r.high <= 0, &constant);
      break;
    case ir::BinaryOp::kGe:
      done = decided(r.low >= 0, r.high < 0, &constant);
      break;
    case ir::BinaryOp::kEq:
      done = decided(r.low == 0 && r.high == 0, r.low > 0 || r.high < 0, &constant);
      break;
    case ir::BinaryOp::kNe:
      done = decided(r.low > 0 || r.high < 0, r.low == 0 && r.high == 0, &constant);
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
  if (done) return constant;
  Index left;
  Index right;
  for (const Index::Term& t : a.terms) {
    if (t.coefficient > 0) {
      left.terms.push_back(t);
    } else {
      right.terms.push_back({t.atom, -t.coefficient});
    }
  }
  if (left.terms.empty()) {
    left.constant = a.constant;
  } else {
    right.constant = -a.constant;
  }
  return ir::binary(op, to_expr(left), to_expr(right));
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
  for (const Index::Term& t : a.terms) {
    const Range& r = atoms_[static_cast<size_t>(t.atom)].range;
    if (r.low == r.high) {
      out.constant += t.coefficient * r.low;
    } else {
      out.terms.push_back(t);
    }
  }
  return out;
}

}  // namespace tensorsmith::lower
