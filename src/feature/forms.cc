#include "feature/forms.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/floor_div.h"

namespace tensorsmith::feature {

namespace {

using ir::BinaryOp;

ValueRange remainder(const ValueRange& a, int64_t c) {
  if (ir::single_quotient(a, c)) return {floor_mod(a.min, c), floor_mod(a.max, c)};
  return {0, c - 1};
}
ValueRange hull(const ValueRange& a, const ValueRange& b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

}  // namespace

Form FormArena::loop(size_t depth, int64_t extent) {
  Atom atom;
  atom.depth = depth;
  atom.loops = uint64_t{1} << depth;
  atom.c = extent;
  atom.range = {0, std::max<int64_t>(extent - 1, 0)};
  return of_atom(atom);
}

std::optional<Form> FormArena::recombine_once(const Form& f) {
  const bool absorbs = std::exchange(absorbs_, true);
  auto joined = AffineArena::recombine_once(f);
  absorbs_ = absorbs;
  return joined;
}

Form FormArena::intern(Kind kind, const Form& a, const Form& b, int64_t c, const ValueRange& range) {
  return range.min == range.max ? constant(range.min) : AffineArena::intern(kind, a, b, c, range);
}

Form FormArena::known(size_t atom, const ValueRange& range) {
  // An assumption made since then may allow a narrower range.
  ValueRange& old = atoms_[atom].range;
  if (range.max < old.max && range.max >= old.min) {
    narrowed_.emplace_back(atom, old);
    old.max = range.max;
  }
  return single(atom);
}

// Divides without absorbed(): the inner sum was not absorbed by its divisor, and TVM does not try
// it again.
Form FormArena::divide_again(const Form& dividend, int64_t c) {
  const bool absorbs = std::exchange(absorbs_, false);
  const Form quotient = floordiv(dividend, c);
  absorbs_ = absorbs;
  return quotient;
}

Form FormArena::divided(Kind kind, const Form& rest, int64_t c, const ValueRange& values) {
  if (kind == Kind::kFloorDiv && absorbs_) {
    if (const auto whole = absorbed(rest, c)) return *whole;
  }
  return AffineArena::divided(kind, rest, c, values);
}

// With c = k * d and 0 <= y < k: floordiv(k * x + y, c) = floordiv(x, d), for sums of two only.
std::optional<Form> FormArena::absorbed(const Form& f, int64_t c) {
  if (f.count != 2 || f.constant != 0) return std::nullopt;
  for (uint32_t i = 0; i < 2; ++i) {
    const Term x = terms_[f.begin + i];
    const ValueRange y = range({0, f.begin + 1 - i, 1});
    if (x.coefficient <= 1 || c % x.coefficient != 0 || y.min < 0 || y.max >= x.coefficient) continue;
    Form single = start(0);
    push(single, x.atom, 1);
    return floordiv(single, c / x.coefficient);
  }
  return std::nullopt;
}

ValueRange FormArena::range_of_difference(const Form& a, const Form& b) {
  const auto saved = mark();
  const ValueRange difference = range(add(a, b, -1));
  rollback(saved);
  return difference;
}

uint64_t FormArena::loops_of(const Form& f) const {
  uint64_t loops = 0;
  for (const Term& t : terms(f)) loops |= atom(t).loops;
  return loops;
}

void FormArena::assume_below(const Form& f, int64_t limit) {
  if (f.constant != 0 || f.count != 1 || terms_[f.begin].coefficient != 1) {
    // With 0 <= y < g: g * x + y < g * n implies x < n.
    for (uint32_t i = 0; i < f.count; ++i) {
      const int64_t g = terms_[f.begin + i].coefficient;
      if (g <= 1 || limit % g != 0) continue;
      Form rest = start(f.constant);
      for (uint32_t k = 0; k < f.count; ++k) {
        const Term term = terms_[f.begin + k];
        if (term.coefficient % g != 0) push(rest, term.atom, term.coefficient);
      }
      const ValueRange y = range(rest);
      if (y.min < 0 || y.max >= g) continue;
      Form whole = start(0);
      for (uint32_t k = 0; k < f.count; ++k) {
        const Term term = terms_[f.begin + k];
        if (term.coefficient % g == 0) push(whole, term.atom, term.coefficient / g);
      }
      return assume_below(whole, limit / g);
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
  ValueRange out = AffineArena::range(f);
  for (const Assumption& assumption : assumptions_) {
    if (equal(assumption.below, f)) out.max = std::max(out.min, std::min(out.max, assumption.limit - 1));
  }
  return out;
}

ValueRange FormArena::range_from(const Form& f, size_t level) const {
  ir::RangeSum sum(f.constant);
  for (const Term& t : terms(f)) sum.add(atom_range_from(atom(t), level), t.coefficient);
  return sum.result();
}

ValueRange FormArena::atom_range_from(const Atom& atom, size_t level) const {
  switch (atom.kind) {
    case Kind::kVariable:
      return atom.depth < level ? ValueRange{0, 0} : atom.range;
    case Kind::kFloorDiv:
      return ir::floor_div(range_from(atom.a, level), atom.c);
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
  return ValueRange::everything();
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
    return constant(std::clamp(imm->value, -kUnknownBound, kUnknownBound));
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
  atom.range = ValueRange::everything();
  atom.loops = loops_of(e, bindings);
  atom.expr = &e;
  return of_atom(atom);
}

}  // namespace tensorsmith::feature
