#include "sched/symbolic.h"

#include <algorithm>
#include <numeric>

#include "base/floor_div.h"
#include "base/result.h"

namespace tensorsmith::sched {

using ir::AffineKind;

SymArena::SymArena() {
  atoms_.reserve(64);
  terms_.reserve(512);
  loops_.reserve(64);
}

int64_t SymArena::checked(int128_t value) {
  if (value > ir::kIndexLimit || value < -ir::kIndexLimit) {
    overflowed_ = true;
    return 0;
  }
  return value;
}

Sym SymArena::loop(SymLoop loop, int64_t extent) {
  SymAtom atom;
  atom.range = {0, extent - 1};
  atom.loop = loops_.push_back(loop);
  return of_atom(atom);
}

SymRange SymArena::add(SymRange a, SymRange b, int64_t factor) {
  if (factor != 1) b = scale(b, factor);
  return {add(a.min, b.min), checked(int128_t{a.width} + b.width - 1)};
}

SymRange SymArena::scale(SymRange a, int64_t factor) {
  if (factor == 0) return point(constant(0));
  Sym min = scale(a.min, factor);
  const int128_t span = int128_t{a.width - 1} * factor;
  if (factor < 0) min.constant = checked(min.constant + span);
  return {min, checked((span < 0 ? -span : span) + 1)};
}

SymRange SymArena::floordiv(SymRange a, int64_t c) {
  if (c == 1) return a;
  const Sym q = multiple_of(a.min, c);
  const Sym r = rest_of(a.min, c);
  if (r.is_constant()) return {q, floor_div(r.constant + a.width - 1, c) + 1};
  const ir::Interval values = enclosure(r);
  if (values.min >= 0 && values.max + a.width - 1 < c) return point(q);
  const Sym quotient = divided(AffineKind::kFloorDiv, r, c, values);
  // r = r.constant modulo g, so r mod c is at most c - g + r.constant mod g.
  const int64_t g = common_factor(r, c);
  const int64_t largest_rest = c - g + floor_mod(r.constant, g);
  return {add(q, quotient), floor_div(largest_rest + a.width - 1, c) + 1};
}

SymRange SymArena::floormod(SymRange a, int64_t c) {
  if (c == 1) return point(constant(0));
  const Sym r = rest_of(a.min, c);
  if (r.is_constant()) return r.constant + a.width <= c ? SymRange{r, a.width} : full(c);
  const ir::Interval values = enclosure(r);
  if (values.min >= 0 && values.max + a.width - 1 < c) return {r, a.width};
  const int64_t g = common_factor(r, c);
  const int64_t largest_rest = c - g + floor_mod(r.constant, g);
  if (largest_rest + a.width - 1 >= c) return full(c);
  return {intern(AffineKind::kFloorMod, r, Sym(), c, {0, largest_rest}), a.width};
}

// The first value is the extremum of both first values; the end is at most max(width) above it.
SymRange SymArena::extremum_of_ranges(bool is_minimum, SymRange a, SymRange b) {
  const Sym d = add(a.min, b.min, -1);
  if (tight_lowest(d) >= b.width - 1) return is_minimum ? b : a;
  if (tight_highest(d) <= 1 - a.width) return is_minimum ? a : b;
  if (d.is_constant()) {
    // The difference of the ranges is known: the extremum begins at one of the first values and ends at one
    // of the ends.
    const bool begins_at_a = is_minimum ? d.constant <= 0 : d.constant >= 0;
    const int64_t a_end = begins_at_a ? a.width : a.width + d.constant;
    const int64_t b_end = begins_at_a ? b.width - d.constant : b.width;
    return {begins_at_a ? a.min : b.min, is_minimum ? std::min(a_end, b_end) : std::max(a_end, b_end)};
  }
  return {extremum(is_minimum ? AffineKind::kMin : AffineKind::kMax, a.min, b.min),
          std::max(a.width, b.width)};
}

SymRange SymArena::unite(SymRange a, SymRange b) {
  const Sym d = add(a.min, b.min, -1);
  const int64_t low = tight_lowest(d);
  const int64_t high = tight_highest(d);
  if (low >= 0) return {b.min, std::max(checked(int128_t{high} + a.width), b.width)};
  if (high <= 0) return {a.min, std::max(checked(-int128_t{low} + b.width), a.width)};
  return {extremum(AffineKind::kMin, a.min, b.min),
          std::max(checked(int128_t{high} + a.width), checked(-int128_t{low} + b.width))};
}

SymRange SymArena::relax(Sym s, const IdVector<SymLoopId, char>& inside) {
  SymRange result = point(constant(s.constant));
  for (uint32_t i = 0; i < s.count; ++i) {
    const Term term = this->term(s, i);
    const SymAtom atom = this->atom(term);
    SymRange value = point({0, 0, 0});
    if (atom.kind == AffineKind::kVariable) {
      if (inside[atom.loop] != 0) {
        value = full(atom.range.max + 1);
      } else {
        value = point(single(term.atom));
      }
    } else if (atom.kind == AffineKind::kFloorDiv) {
      value = floordiv(relax(atom.a, inside), atom.c);
    } else if (atom.kind == AffineKind::kFloorMod) {
      value = floormod(relax(atom.a, inside), atom.c);
    } else if (atom.kind == AffineKind::kMin) {
      value = minimum(relax(atom.a, inside), relax(atom.b, inside));
    } else {
      value = maximum(relax(atom.a, inside), relax(atom.b, inside));
    }
    result = add(result, scale(value, term.coefficient));
  }
  return result;
}

int64_t SymArena::tight_highest(Sym s, int depth) {
  constexpr int kMaxDepth = 6;
  for (uint32_t i = 0; i < s.count && depth < kMaxDepth; ++i) {
    const Term term = this->term(s, i);
    const SymAtom atom = this->atom(term);
    if ((atom.kind != AffineKind::kMin && atom.kind != AffineKind::kMax) || std::abs(term.coefficient) != 1)
      continue;
    // In rest +- min(a, b), each operand in turn replaces the atom.
    const Sym self{0, s.begin + i, 1};
    const Sym rest = add(s, scale(self, -1));
    const int64_t a = tight_highest(add(rest, scale(atom.a, term.coefficient)), depth + 1);
    const int64_t b = tight_highest(add(rest, scale(atom.b, term.coefficient)), depth + 1);
    const bool larger = (atom.kind == AffineKind::kMax) == (term.coefficient > 0);
    return std::min(larger ? std::max(a, b) : std::min(a, b), highest(s));
  }
  return highest(s);
}

ir::Expr SymArena::to_expr(Sym s, const IdVector<StageId, IdVector<IteratorId, ir::Var>>& vars) const {
  ir::Expr sum;
  for (uint32_t i = 0; i < s.count; ++i) {
    const Term term = this->term(s, i);
    const SymAtom& atom = this->atom(term);
    ir::Expr value;
    switch (atom.kind) {
      case AffineKind::kVariable: {
        const SymLoop& loop = loops_[atom.loop];
        value = vars[loop.stage][loop.iterator];
        break;
      }
      case AffineKind::kFloorDiv:
        value = ir::floordiv(to_expr(atom.a, vars), atom.c);
        break;
      case AffineKind::kFloorMod:
        value = ir::floormod(to_expr(atom.a, vars), atom.c);
        break;
      case AffineKind::kMin:
        value = ir::min(to_expr(atom.a, vars), to_expr(atom.b, vars));
        break;
      case AffineKind::kMax:
        value = ir::max(to_expr(atom.a, vars), to_expr(atom.b, vars));
        break;
      case AffineKind::kEither:
      case AffineKind::kOpaque:
        throw_internal_error(__FILE__, __LINE__, "bound inference does not create such atoms");
    }
    if (term.coefficient != 1) value = std::move(value) * ir::Expr(term.coefficient);
    sum = sum.defined() ? std::move(sum) + std::move(value) : std::move(value);
  }
  if (!sum.defined()) return s.constant;
  if (s.constant != 0) sum = std::move(sum) + ir::Expr(s.constant);
  return sum;
}

}  // namespace tensorsmith::sched
