#include "feature/forms.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/floor_div.h"
#include "ir/affine_visitor.h"
#include "ir/parts.h"

namespace tensorsmith::feature {

namespace {

ValueRange remainder(const ValueRange& a, int64_t c) {
  if (ir::single_quotient(a, c)) return {floor_mod(a.min, c), floor_mod(a.max, c)};
  return {0, c - 1};
}
ValueRange hull(const ValueRange& a, const ValueRange& b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

// Returns the innermost binding of the variable, or null.
const Form* binding_of(const ir::Var& var, std::span<const Binding> bindings) {
  for (const auto& [bound, form] : std::views::reverse(bindings))
    if (bound == var.get()) return &form;
  return nullptr;
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
  const size_t index = terms_[f.begin].atom;
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
  uint64_t loops = 0;
  if (const auto* ref = ir::as<ir::VarRef>(e)) {
    if (const Form* bound = binding_of(ref->var, bindings)) loops = loops_of(*bound);
  }
  ir::for_each_part(e, [&](const ir::Expr& part) { loops |= loops_of(part, bindings); });
  return loops;
}

class FormArena::Reader : public ir::AffineVisitor<Reader, Form> {
 public:
  Reader(FormArena& arena, std::span<const Binding> bindings) : arena_(arena), bindings_(bindings) {}

  FormArena& algebra() { return arena_; }
  Form operand(const ir::Expr& e) { return evaluate(e); }
  static Form literal(int64_t value, const ir::Expr&) {
    return constant(std::clamp(value, -kUnknownBound, kUnknownBound));
  }
  Form variable(const ir::VarRef& n, const ir::Expr& e) {
    const Form* bound = binding_of(n.var, bindings_);
    return bound != nullptr ? *bound : other(e);
  }
  static std::optional<int64_t> constant_of(const Form& f) {
    return f.is_constant() ? std::optional(f.constant) : std::nullopt;
  }
  static bool never_negative(const Form&) { return false; }
  Form cast(const ir::Cast& n, const ir::Expr& e) {
    return ir::is_int(n.a.dtype()) ? operand(n.a) : other(e);
  }
  Form select(const ir::Select& n, const ir::Expr& e) {
    Atom atom;
    atom.kind = Kind::kEither;
    atom.a = operand(n.a);
    atom.b = operand(n.b);
    atom.range = hull(arena_.range(atom.a), arena_.range(atom.b));
    return of_expression(atom, e);
  }
  Form other(const ir::Expr& e) {
    Atom atom;
    atom.kind = Kind::kOpaque;
    atom.range = ValueRange::everything();
    return of_expression(atom, e);
  }

 private:
  Form of_expression(Atom atom, const ir::Expr& e) {
    atom.loops = arena_.loops_of(e, bindings_);
    atom.expr = &e;
    return arena_.of_atom(atom);
  }

  FormArena& arena_;
  std::span<const Binding> bindings_;
};

Form FormArena::of(const ir::Expr& e, std::span<const Binding> bindings) {
  return Reader(*this, bindings).evaluate(e);
}

}  // namespace tensorsmith::feature
