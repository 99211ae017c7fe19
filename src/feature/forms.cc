#include "feature/forms.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/floor_div.h"

namespace tensorsmith::feature {

namespace {

using ir::BinaryOp;
constexpr ValueRange kUnknown = {-kUnknownBound, kUnknownBound};

int64_t clamp(int64_t v) { return std::clamp(v, -kUnknownBound, kUnknownBound); }
int64_t multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return (a < 0) == (b < 0) ? kUnknownBound : -kUnknownBound;
  return clamp(product);
}

ValueRange divide(const ValueRange& a, int64_t c) {
  return {a.min <= -kUnknownBound ? a.min : floor_div(a.min, c),
          a.max >= kUnknownBound ? a.max : floor_div(a.max, c)};
}
ValueRange remainder(const ValueRange& a, int64_t c) {
  if (a.min > -kUnknownBound && a.max < kUnknownBound && floor_div(a.min, c) == floor_div(a.max, c))
    return {floor_mod(a.min, c), floor_mod(a.max, c)};
  return {0, c - 1};
}
ValueRange hull(const ValueRange& a, const ValueRange& b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

}  // namespace

Form FormArena::of_atom(Atom atom) {
  const auto begin = static_cast<uint32_t>(terms_.size());
  terms_.push_back({static_cast<int32_t>(atoms_.size()), 1});
  atoms_.push_back(atom);
  return {0, begin, 1};
}

Form FormArena::loop(int depth, int64_t extent) {
  Atom atom;
  atom.depth = depth;
  atom.loops = uint64_t{1} << depth;
  atom.c = extent;
  atom.range = {0, std::max<int64_t>(extent - 1, 0)};
  return of_atom(atom);
}

Form FormArena::add(Form a, Form b, int64_t factor) {
  const int64_t constant = clamp(a.constant + multiply(b.constant, factor));
  if (b.count == 0 || factor == 0) return {constant, a.begin, a.count};
  if (a.count == 0 && factor == 1) return {constant, b.begin, b.count};
  const auto begin = static_cast<uint32_t>(terms_.size());
  uint32_t i = 0, j = 0;
  while (i < a.count || j < b.count) {
    // By value: push_back may move the terms.
    const Term x = i < a.count ? terms_[a.begin + i] : Term{INT32_MAX, 0};
    const Term y = j < b.count ? terms_[b.begin + j] : Term{INT32_MAX, 0};
    if (x.atom < y.atom) {
      terms_.push_back(x);
      ++i;
    } else if (y.atom < x.atom) {
      terms_.push_back({y.atom, multiply(y.coefficient, factor)});
      ++j;
    } else {
      const int64_t sum = clamp(x.coefficient + multiply(y.coefficient, factor));
      if (sum != 0) terms_.push_back({x.atom, sum});
      ++i;
      ++j;
    }
  }
  return recombined({constant, begin, static_cast<uint32_t>(terms_.size()) - begin});
}

// floordiv(a, c) * c * k + floormod(a, c) * k = a * k, and
// floormod(floordiv(a, c), d) * c * k + floormod(a, c) * k = floormod(a, c * d) * k
Form FormArena::recombined(Form f) {
  for (uint32_t i = 0; i < f.count; ++i) {
    const Term remainder = terms_[f.begin + i];
    const Atom mod = atom(remainder);
    if (mod.kind != Kind::kFloorMod) continue;
    const Form quotient = floordiv(mod.a, mod.c);
    const bool single =
        quotient.constant == 0 && quotient.count == 1 && terms_[quotient.begin].coefficient == 1;
    const int64_t coefficient = multiply(remainder.coefficient, mod.c);
    for (uint32_t j = 0; j < f.count; ++j) {
      const Term other = terms_[f.begin + j];
      if (other.coefficient != coefficient) continue;
      const Atom other_atom = atom(other);
      Form whole = mod.a;
      if (other_atom.kind == Kind::kFloorMod && equal(other_atom.a, quotient) &&
          other_atom.c < kUnknownBound / mod.c) {
        whole = floormod(mod.a, mod.c * other_atom.c);
      } else if (!single || terms_[quotient.begin].atom != other.atom) {
        continue;
      }
      const auto begin = static_cast<uint32_t>(terms_.size());
      for (uint32_t k = 0; k < f.count; ++k) {
        if (k == i || k == j) continue;
        const Term kept = terms_[f.begin + k];
        terms_.push_back(kept);
      }
      return add({f.constant, begin, f.count - 2}, whole, remainder.coefficient);
    }
  }
  return f;
}

bool FormArena::equal(const Form& a, const Form& b) const {
  if (a.constant != b.constant || a.count != b.count) return false;
  for (uint32_t i = 0; i < a.count; ++i) {
    const Term &x = terms_[a.begin + i], &y = terms_[b.begin + i];
    if (x.atom != y.atom || x.coefficient != y.coefficient) return false;
  }
  return true;
}

Form FormArena::intern(Kind kind, Form a, Form b, int64_t c, ValueRange range) {
  if (range.min == range.max) return constant(range.min);
  for (size_t k = atoms_.size(); k-- > 0;) {
    Atom& atom = atoms_[k];
    if (atom.kind != kind || atom.c != c || !equal(atom.a, a) || !equal(atom.b, b)) continue;
    // An assumption made since says more.
    if (range.max < atom.range.max && range.max >= atom.range.min) {
      narrowed_.emplace_back(k, atom.range);
      atom.range.max = range.max;
    }
    const auto begin = static_cast<uint32_t>(terms_.size());
    terms_.push_back({static_cast<int32_t>(k), 1});
    return {0, begin, 1};
  }
  Atom atom;
  atom.kind = kind;
  atom.c = c;
  atom.a = a;
  atom.b = b;
  atom.loops = loops_of(a) | loops_of(b);
  atom.range = range;
  return of_atom(atom);
}

// With a = c * q + r: floordiv(a, c) = q + floordiv(r, c), floormod(a, c) = floormod(r, c), where q collects
// the terms whose coefficients c divides. A common divisor g of c and the coefficients of r cancels:
// floordiv(g * x + y, g * d) = floordiv(x, d) and floormod(g * x + y, g * d) = g * floormod(x, d) + y for
// 0 <= y < g.
Form FormArena::floordiv(Form a, int64_t c, bool absorbs) {
  if (c == 1) return a;
  const auto quotient_begin = static_cast<uint32_t>(terms_.size());
  int64_t g = c;
  uint32_t rest_count = 0;
  for (uint32_t i = 0; i < a.count; ++i) {
    const Term t = terms_[a.begin + i];
    if (t.coefficient % c == 0) {
      terms_.push_back({t.atom, t.coefficient / c});
    } else {
      ++rest_count;
      g = std::gcd(g, t.coefficient);
    }
  }
  const Form quotient{floor_div(a.constant, c), quotient_begin, a.count - rest_count};
  if (rest_count == 0) return quotient;
  const auto rest_begin = static_cast<uint32_t>(terms_.size());
  for (uint32_t i = 0; i < a.count; ++i) {
    const Term t = terms_[a.begin + i];
    if (t.coefficient % c != 0) terms_.push_back({t.atom, t.coefficient / g});
  }
  const Form rest{floor_div(floor_mod(a.constant, c), g), rest_begin, rest_count};
  const int64_t d = c / g;
  if (d == 1) return add(quotient, rest);
  const ValueRange r = range(rest);
  if (r.min >= 0 && r.max < d) return quotient;
  if (rest.constant == 0 && rest.count == 1 && terms_[rest.begin].coefficient == 1) {
    const Atom inner = atom(terms_[rest.begin]);
    // The sum inside was not absorbed by its divisor; TVM does not look at it again.
    if (inner.kind == Kind::kFloorDiv && inner.c <= kUnknownBound / d)
      return add(quotient, floordiv(inner.a, inner.c * d, false));
  }
  if (absorbs) {
    if (const auto whole = absorbed(rest, d)) return add(quotient, *whole);
  }
  return add(quotient, intern(Kind::kFloorDiv, rest, {}, d, divide(r, d)));
}

std::optional<Form> FormArena::absorbed(const Form& f, int64_t c) {
  if (f.count != 2 || f.constant != 0) return std::nullopt;
  for (uint32_t i = 0; i < 2; ++i) {
    const Term x = terms_[f.begin + i];
    const ValueRange y = range({0, f.begin + 1 - i, 1});
    if (x.coefficient <= 1 || c % x.coefficient != 0 || y.min < 0 || y.max >= x.coefficient) continue;
    const auto begin = static_cast<uint32_t>(terms_.size());
    terms_.push_back({x.atom, 1});
    return floordiv({0, begin, 1}, c / x.coefficient);
  }
  return std::nullopt;
}

Form FormArena::floormod(Form a, int64_t c) {
  if (c == 1) return constant(0);
  int64_t g = c;
  const auto rest_begin = static_cast<uint32_t>(terms_.size());
  for (uint32_t i = 0; i < a.count; ++i) {
    const Term t = terms_[a.begin + i];
    if (t.coefficient % c == 0) continue;
    terms_.push_back(t);
    g = std::gcd(g, t.coefficient);
  }
  Form rest{floor_mod(a.constant, c), rest_begin, static_cast<uint32_t>(terms_.size()) - rest_begin};
  if (rest.count == 0) return rest;
  const ValueRange r = range(rest);
  if (r.min >= 0 && r.max < c) return rest;
  if (g > 1) {
    const int64_t y = floor_mod(rest.constant, g);
    for (uint32_t i = 0; i < rest.count; ++i) terms_[rest.begin + i].coefficient /= g;
    rest.constant = (rest.constant - y) / g;
    return add(constant(y), floormod(rest, c / g), g);
  }
  return intern(Kind::kFloorMod, rest, {}, c, remainder(r, c));
}

ValueRange FormArena::range_of_difference(const Form& a, const Form& b) {
  const auto saved = mark();
  const ValueRange difference = range(add(a, b, -1));
  rollback(saved);
  return difference;
}

Form FormArena::minimum(Form a, Form b) {
  const ValueRange d = range_of_difference(a, b);
  if (d.max <= 0) return a;
  if (d.min >= 0) return b;
  const ValueRange x = range(a), y = range(b);
  return intern(Kind::kMin, a, b, 1, {std::min(x.min, y.min), std::min(x.max, y.max)});
}

Form FormArena::maximum(Form a, Form b) {
  const ValueRange d = range_of_difference(a, b);
  if (d.min >= 0) return a;
  if (d.max <= 0) return b;
  const ValueRange x = range(a), y = range(b);
  return intern(Kind::kMax, a, b, 1, {std::max(x.min, y.min), std::max(x.max, y.max)});
}

uint64_t FormArena::loops_of(const Form& f) const {
  uint64_t loops = 0;
  for (const Term& t : terms(f)) loops |= atom(t).loops;
  return loops;
}

void FormArena::assume_below(const Form& f, int64_t limit) {
  if (f.constant != 0 || f.count != 1 || terms_[f.begin].coefficient != 1) {
    // With 0 <= y < g: g * x + y < g * n says x < n.
    for (uint32_t i = 0; i < f.count; ++i) {
      const int64_t g = terms_[f.begin + i].coefficient;
      if (g <= 1 || limit % g != 0) continue;
      const auto rest = static_cast<uint32_t>(terms_.size());
      for (uint32_t k = 0; k < f.count; ++k) {
        const Term term = terms_[f.begin + k];
        if (term.coefficient % g != 0) terms_.push_back(term);
      }
      const auto whole = static_cast<uint32_t>(terms_.size());
      const ValueRange y = range({f.constant, rest, whole - rest});
      if (y.min < 0 || y.max >= g) continue;
      for (uint32_t k = 0; k < f.count; ++k) {
        const Term term = terms_[f.begin + k];
        if (term.coefficient % g == 0) terms_.push_back({term.atom, term.coefficient / g});
      }
      return assume_below({0, whole, static_cast<uint32_t>(terms_.size()) - whole}, limit / g);
    }
    assumptions_.push_back({f, limit});
    return;
  }
  const auto index = static_cast<size_t>(terms_[f.begin].atom);
  const Atom a = atoms_[index];
  if (a.kind == Kind::kFloorDiv && limit < kUnknownBound / a.c) return assume_below(a.a, limit * a.c);
  narrowed_.emplace_back(index, a.range);
  atoms_[index].range.max = std::max(a.range.min, std::min(a.range.max, limit - 1));
}

void FormArena::drop_assumptions() {
  assumptions_.clear();
  for (; !narrowed_.empty(); narrowed_.pop_back())
    atoms_[narrowed_.back().first].range = narrowed_.back().second;
}

ValueRange FormArena::range(const Form& f) const {
  ValueRange out{f.constant, f.constant};
  for (const Term& t : terms(f)) {
    const ValueRange& r = atom(t).range;
    const int64_t x = multiply(t.coefficient, r.min), y = multiply(t.coefficient, r.max);
    out = {clamp(out.min + std::min(x, y)), clamp(out.max + std::max(x, y))};
  }
  for (const Assumption& assumption : assumptions_) {
    if (equal(assumption.below, f)) out.max = std::max(out.min, std::min(out.max, assumption.limit - 1));
  }
  return out;
}

ValueRange FormArena::range_from(const Form& f, int level) const {
  ValueRange out{f.constant, f.constant};
  for (const Term& t : terms(f)) {
    const ValueRange r = atom_range_from(atom(t), level);
    const int64_t x = multiply(t.coefficient, r.min), y = multiply(t.coefficient, r.max);
    out = {clamp(out.min + std::min(x, y)), clamp(out.max + std::max(x, y))};
  }
  return out;
}

ValueRange FormArena::atom_range_from(const Atom& atom, int level) const {
  switch (atom.kind) {
    case Kind::kLoop:
      return atom.depth < level ? ValueRange{0, 0} : atom.range;
    case Kind::kFloorDiv:
      return divide(range_from(atom.a, level), atom.c);
    case Kind::kFloorMod:
      return remainder(range_from(atom.a, level), atom.c);
    case Kind::kMin: {
      const ValueRange x = range_from(atom.a, level), y = range_from(atom.b, level);
      return {std::min(x.min, y.min), std::min(x.max, y.max)};
    }
    case Kind::kMax: {
      const ValueRange x = range_from(atom.a, level), y = range_from(atom.b, level);
      return {std::max(x.min, y.min), std::max(x.max, y.max)};
    }
    case Kind::kEither:
      return hull(range_from(atom.a, level), range_from(atom.b, level));
    case Kind::kOpaque:
      return atom.range;
  }
  return kUnknown;
}

uint64_t FormArena::loops_of(const ir::Expr& e, std::span<const Binding> bindings) const {
  return ir::visit(ir::overloaded{
                       [](const ir::IntImm&) { return uint64_t{0}; },
                       [](const ir::FloatImm&) { return uint64_t{0}; },
                       [&](const ir::VarRef& ref) {
                         for (size_t i = bindings.size(); i-- > 0;) {
                           if (bindings[i].first == ref.var.get()) return loops_of(bindings[i].second);
                         }
                         return uint64_t{0};
                       },
                       [&](const ir::Unary& unary) { return loops_of(unary.a, bindings); },
                       [&](const ir::Binary& binary) {
                         return loops_of(binary.a, bindings) | loops_of(binary.b, bindings);
                       },
                       [&](const ir::Select& select) {
                         return loops_of(select.condition, bindings) | loops_of(select.a, bindings) |
                                loops_of(select.b, bindings);
                       },
                       [&](const ir::Cast& cast) { return loops_of(cast.a, bindings); },
                       [&](const ir::Call& call) {
                         uint64_t loops = 0;
                         for (const ir::Expr& arg : call.args) loops |= loops_of(arg, bindings);
                         return loops;
                       },
                       [&](const ir::Load& load) {
                         uint64_t loops = 0;
                         for (const ir::Expr& index : load.indices) loops |= loops_of(index, bindings);
                         return loops;
                       },
                   },
                   e);
}

Form FormArena::of(const ir::Expr& e, std::span<const Binding> bindings) {
  if (const auto* ref = ir::as<ir::VarRef>(e)) {
    for (size_t i = bindings.size(); i-- > 0;) {
      if (bindings[i].first == ref->var.get()) return bindings[i].second;
    }
  } else if (const auto* imm = ir::as<ir::IntImm>(e)) {
    return constant(clamp(imm->value));
  } else if (const auto* binary = ir::as<ir::Binary>(e)) {
    const auto c = ir::as_int(binary->b);
    switch (binary->op) {
      case BinaryOp::kAdd:
        return add(of(binary->a, bindings), of(binary->b, bindings));
      case BinaryOp::kSub:
        return add(of(binary->a, bindings), of(binary->b, bindings), -1);
      case BinaryOp::kMul:
        if (c) return scale(of(binary->a, bindings), *c);
        if (const auto a = ir::as_int(binary->a)) return scale(of(binary->b, bindings), *a);
        break;
      case BinaryOp::kFloorDiv:
        if (c && *c > 0) return floordiv(of(binary->a, bindings), *c);
        break;
      case BinaryOp::kFloorMod:
        if (c && *c > 0) return floormod(of(binary->a, bindings), *c);
        break;
      case BinaryOp::kMin:
        return minimum(of(binary->a, bindings), of(binary->b, bindings));
      case BinaryOp::kMax:
        return maximum(of(binary->a, bindings), of(binary->b, bindings));
      case BinaryOp::kDiv:
      case BinaryOp::kEq:
      case BinaryOp::kNe:
      case BinaryOp::kLt:
      case BinaryOp::kLe:
      case BinaryOp::kGt:
      case BinaryOp::kGe:
      case BinaryOp::kAnd:
      case BinaryOp::kOr:
      case BinaryOp::kBitAnd:
      case BinaryOp::kBitOr:
      case BinaryOp::kBitXor:
      case BinaryOp::kShl:
      case BinaryOp::kShr:
        break;
    }
  } else if (const auto* cast = ir::as<ir::Cast>(e)) {
    if (ir::is_int(cast->a.dtype())) return of(cast->a, bindings);
  } else if (const auto* unary = ir::as<ir::Unary>(e)) {
    if (unary->op == ir::UnaryOp::kNeg) return scale(of(unary->a, bindings), -1);
  } else if (const auto* select = ir::as<ir::Select>(e)) {
    Atom atom;
    atom.kind = Kind::kEither;
    atom.a = of(select->a, bindings);
    atom.b = of(select->b, bindings);
    atom.range = hull(range(atom.a), range(atom.b));
    atom.loops = loops_of(e, bindings);
    atom.expr = &e;
    return of_atom(atom);
  }
  Atom atom;
  atom.kind = Kind::kOpaque;
  atom.range = kUnknown;
  atom.loops = loops_of(e, bindings);
  atom.expr = &e;
  return of_atom(atom);
}

}  // namespace tensorsmith::feature
