#include "sched/symbolic.h"

#include <algorithm>
#include <numeric>

#include "base/floor_div.h"
#include "base/result.h"

namespace tensorsmith::sched {

SymArena::SymArena() {
  atoms_.reserve(64);
  terms_.reserve(512);
  loops_.reserve(64);
}

int64_t SymArena::checked(int128_t value) {
  constexpr int64_t kLimit = int64_t{1} << 60;
  if (value > kLimit || value < -kLimit) {
    overflowed_ = true;
    return 0;
  }
  return static_cast<int64_t>(value);
}

Sym SymArena::loop(int stage, int iterator, int64_t extent) {
  const int atom = static_cast<int>(atoms_.size());
  atoms_.push_back({AtomKind::kLoop, {}, {}, 1, 0, extent - 1, static_cast<int>(loops_.size())});
  loops_.push_back({stage, iterator, atom});
  terms_.push_back({atom, 1});
  return {0, static_cast<uint32_t>(terms_.size() - 1), 1};
}

Sym SymArena::add(Sym a, Sym b) {
  const int64_t constant = checked(static_cast<int128_t>(a.constant) + b.constant);
  if (b.count == 0) return {constant, a.begin, a.count};
  if (a.count == 0) return {constant, b.begin, b.count};
  const auto begin = static_cast<uint32_t>(terms_.size());
  uint32_t i = 0;
  uint32_t j = 0;
  while (i < a.count || j < b.count) {
    // By value: push_back may move the storage.
    const Term* x = i < a.count ? &terms_[a.begin + i] : nullptr;
    const Term* y = j < b.count ? &terms_[b.begin + j] : nullptr;
    Term term;
    if (y == nullptr || (x != nullptr && x->atom < y->atom)) {
      term = *x;
      ++i;
    } else if (x == nullptr || y->atom < x->atom) {
      term = *y;
      ++j;
    } else {
      term = {x->atom, checked(static_cast<int128_t>(x->coefficient) + y->coefficient)};
      ++i;
      ++j;
    }
    if (term.coefficient != 0) terms_.push_back(term);
  }
  return {constant, begin, static_cast<uint32_t>(terms_.size()) - begin};
}

Sym SymArena::scale(Sym a, int64_t factor) {
  if (factor == 1) return a;
  if (factor == 0) return constant(0);
  const auto begin = static_cast<uint32_t>(terms_.size());
  for (uint32_t i = 0; i < a.count; ++i) {
    const Term term = terms_[a.begin + i];
    terms_.push_back({term.atom, checked(static_cast<int128_t>(term.coefficient) * factor)});
  }
  return {checked(static_cast<int128_t>(a.constant) * factor), begin, a.count};
}

SymRange SymArena::add(SymRange a, SymRange b) {
  return {add(a.min, b.min), checked(static_cast<int128_t>(a.width) + b.width - 1)};
}

SymRange SymArena::scale(SymRange a, int64_t factor) {
  if (factor == 0) return point(constant(0));
  Sym min = scale(a.min, factor);
  const int128_t span = static_cast<int128_t>(a.width - 1) * factor;
  if (factor < 0) min.constant = checked(min.constant + span);
  return {min, checked((span < 0 ? -span : span) + 1)};
}

void SymArena::divide(Sym s, int64_t c, Sym* quotient, Sym* rest) {
  const auto q_begin = static_cast<uint32_t>(terms_.size());
  for (uint32_t i = 0; i < s.count; ++i) {
    const Term term = terms_[s.begin + i];
    if (term.coefficient % c == 0) terms_.push_back({term.atom, term.coefficient / c});
  }
  *quotient = {floor_div(s.constant, c), q_begin, static_cast<uint32_t>(terms_.size()) - q_begin};
  const auto r_begin = static_cast<uint32_t>(terms_.size());
  for (uint32_t i = 0; i < s.count; ++i) {
    const Term term = terms_[s.begin + i];
    if (term.coefficient % c != 0) terms_.push_back(term);
  }
  *rest = {floor_mod(s.constant, c), r_begin, static_cast<uint32_t>(terms_.size()) - r_begin};
}

int64_t SymArena::gcd_of_terms(Sym s, int64_t g) const {
  for (uint32_t i = 0; i < s.count; ++i) g = std::gcd(g, terms_[s.begin + i].coefficient);
  return g;
}

SymRange SymArena::floordiv(SymRange a, int64_t c) {
  if (c == 1) return a;
  Sym q;
  Sym r;
  divide(a.min, c, &q, &r);
  if (r.is_constant()) return {q, floor_div(r.constant + a.width - 1, c) + 1};
  if (lowest(r) >= 0 && highest(r) + a.width - 1 < c) return point(q);
  Atom atom;
  atom.kind = AtomKind::kFloorDiv;
  atom.a = r;
  atom.c = c;
  atom.low = floor_div(lowest(r), c);
  atom.high = floor_div(highest(r), c);
  // r = r.constant modulo g, so r mod c is at most c - g + r.constant mod g.
  const int64_t g = gcd_of_terms(r, c);
  const int64_t largest_rest = c - g + floor_mod(r.constant, g);
  return {add(q, intern(atom)), floor_div(largest_rest + a.width - 1, c) + 1};
}

SymRange SymArena::floormod(SymRange a, int64_t c) {
  if (c == 1) return point(constant(0));
  Sym q;
  Sym r;
  divide(a.min, c, &q, &r);
  if (r.is_constant()) return r.constant + a.width <= c ? SymRange{r, a.width} : full(c);
  if (lowest(r) >= 0 && highest(r) + a.width - 1 < c) return {r, a.width};
  const int64_t g = gcd_of_terms(r, c);
  const int64_t largest_rest = c - g + floor_mod(r.constant, g);
  if (largest_rest + a.width - 1 >= c) return full(c);
  Atom atom;
  atom.kind = AtomKind::kFloorMod;
  atom.a = r;
  atom.c = c;
  atom.low = 0;
  atom.high = largest_rest;
  return {intern(atom), a.width};
}

// The lower ends' minimum; the upper end is at most max(width) above it.
SymRange SymArena::minimum(SymRange a, SymRange b) {
  const Sym d = add(a.min, scale(b.min, -1));
  if (tight_lowest(d) >= b.width - 1) return b;
  if (tight_highest(d) <= 1 - a.width) return a;
  if (d.is_constant()) {
    // Both known relative to each other: min is the lower, max the lower of the upper ends.
    const Sym min = d.constant <= 0 ? a.min : b.min;
    const int64_t a_end = d.constant <= 0 ? a.width : a.width + d.constant;
    const int64_t b_end = d.constant <= 0 ? b.width - d.constant : b.width;
    return {min, std::min(a_end, b_end)};
  }
  Atom atom;
  atom.kind = AtomKind::kMin;
  atom.a = a.min;
  atom.b = b.min;
  atom.low = std::min(lowest(a.min), lowest(b.min));
  atom.high = std::min(highest(a.min), highest(b.min));
  return {intern(atom), std::max(a.width, b.width)};
}

SymRange SymArena::maximum(SymRange a, SymRange b) {
  const Sym d = add(a.min, scale(b.min, -1));
  if (tight_lowest(d) >= b.width - 1) return a;
  if (tight_highest(d) <= 1 - a.width) return b;
  if (d.is_constant()) {
    const Sym min = d.constant >= 0 ? a.min : b.min;
    const int64_t a_end = d.constant >= 0 ? a.width : a.width + d.constant;
    const int64_t b_end = d.constant >= 0 ? b.width - d.constant : b.width;
    return {min, std::max(a_end, b_end)};
  }
  Atom atom;
  atom.kind = AtomKind::kMax;
  atom.a = a.min;
  atom.b = b.min;
  atom.low = std::max(lowest(a.min), lowest(b.min));
  atom.high = std::max(highest(a.min), highest(b.min));
  return {intern(atom), std::max(a.width, b.width)};
}

SymRange SymArena::unite(SymRange a, SymRange b) {
  const Sym d = add(a.min, scale(b.min, -1));
  const int64_t low = tight_lowest(d);
  const int64_t high = tight_highest(d);
  if (low >= 0) return {b.min, std::max(checked(static_cast<int128_t>(high) + a.width), b.width)};
  if (high <= 0) return {a.min, std::max(checked(-static_cast<int128_t>(low) + b.width), a.width)};
  Atom atom;
  atom.kind = AtomKind::kMin;
  atom.a = a.min;
  atom.b = b.min;
  atom.low = std::min(lowest(a.min), lowest(b.min));
  atom.high = std::min(highest(a.min), highest(b.min));
  return {intern(atom), std::max(checked(static_cast<int128_t>(high) + a.width),
                                 checked(-static_cast<int128_t>(low) + b.width))};
}

SymRange SymArena::relax(Sym s, const std::vector<char>& inside) {
  SymRange result = point(constant(s.constant));
  for (uint32_t i = 0; i < s.count; ++i) {
    const Term term = terms_[s.begin + i];
    const Atom atom = atoms_[static_cast<size_t>(term.atom)];
    SymRange value = point({0, 0, 0});
    if (atom.kind == AtomKind::kLoop) {
      if (inside[static_cast<size_t>(atom.loop)] != 0) {
        value = full(atom.high + 1);
      } else {
        value = point({0, static_cast<uint32_t>(terms_.size()), 1});
        terms_.push_back({term.atom, 1});
      }
    } else if (atom.kind == AtomKind::kFloorDiv) {
      value = floordiv(relax(atom.a, inside), atom.c);
    } else if (atom.kind == AtomKind::kFloorMod) {
      value = floormod(relax(atom.a, inside), atom.c);
    } else if (atom.kind == AtomKind::kMin) {
      value = minimum(relax(atom.a, inside), relax(atom.b, inside));
    } else {
      value = maximum(relax(atom.a, inside), relax(atom.b, inside));
    }
    result = add(result, scale(value, term.coefficient));
  }
  return result;
}

int64_t SymArena::lowest(Sym s) const {
  int128_t value = s.constant;
  for (uint32_t i = 0; i < s.count; ++i) {
    const Term& term = terms_[s.begin + i];
    const Atom& atom = atoms_[static_cast<size_t>(term.atom)];
    value += static_cast<int128_t>(term.coefficient) * (term.coefficient > 0 ? atom.low : atom.high);
  }
  constexpr int64_t kLimit = int64_t{1} << 61;
  return static_cast<int64_t>(std::clamp<int128_t>(value, -kLimit, kLimit));
}

int64_t SymArena::highest(Sym s) const {
  int128_t value = s.constant;
  for (uint32_t i = 0; i < s.count; ++i) {
    const Term& term = terms_[s.begin + i];
    const Atom& atom = atoms_[static_cast<size_t>(term.atom)];
    value += static_cast<int128_t>(term.coefficient) * (term.coefficient > 0 ? atom.high : atom.low);
  }
  constexpr int64_t kLimit = int64_t{1} << 61;
  return static_cast<int64_t>(std::clamp<int128_t>(value, -kLimit, kLimit));
}

int64_t SymArena::tight_highest(Sym s, int depth) {
  constexpr int kMaxDepth = 6;
  for (uint32_t i = 0; i < s.count && depth < kMaxDepth; ++i) {
    const Term term = terms_[s.begin + i];
    const Atom atom = atoms_[static_cast<size_t>(term.atom)];
    if ((atom.kind != AtomKind::kMin && atom.kind != AtomKind::kMax) || std::abs(term.coefficient) != 1)
      continue;
    // rest +- min(a, b): each operand in turn takes the atom's place.
    const Sym self{0, s.begin + i, 1};
    const Sym rest = add(s, scale(self, -1));
    const int64_t a = tight_highest(add(rest, scale(atom.a, term.coefficient)), depth + 1);
    const int64_t b = tight_highest(add(rest, scale(atom.b, term.coefficient)), depth + 1);
    const bool larger = (atom.kind == AtomKind::kMax) == (term.coefficient > 0);
    return std::min(larger ? std::max(a, b) : std::min(a, b), highest(s));
  }
  return highest(s);
}

bool SymArena::equal(Sym a, Sym b) const {
  if (a.constant != b.constant || a.count != b.count) return false;
  for (uint32_t i = 0; i < a.count; ++i) {
    const Term& x = terms_[a.begin + i];
    const Term& y = terms_[b.begin + i];
    if (x.atom != y.atom || x.coefficient != y.coefficient) return false;
  }
  return true;
}

Sym SymArena::intern(Atom atom) {
  int32_t id = -1;
  for (size_t i = 0; i < atoms_.size() && id < 0; ++i) {
    const Atom& other = atoms_[i];
    if (other.kind == atom.kind && other.c == atom.c && equal(other.a, atom.a) && equal(other.b, atom.b))
      id = static_cast<int32_t>(i);
  }
  if (id < 0) {
    id = static_cast<int32_t>(atoms_.size());
    atoms_.push_back(atom);
  }
  terms_.push_back({id, 1});
  return {0, static_cast<uint32_t>(terms_.size() - 1), 1};
}

ir::Expr SymArena::to_expr(Sym s, const std::vector<std::vector<ir::Var>>& vars) const {
  ir::Expr sum;
  for (uint32_t i = 0; i < s.count; ++i) {
    const Term& term = terms_[s.begin + i];
    const Atom& atom = atoms_[static_cast<size_t>(term.atom)];
    ir::Expr value;
    switch (atom.kind) {
      case AtomKind::kLoop: {
        const LoopAtom& loop = loops_[static_cast<size_t>(atom.loop)];
        value = vars[static_cast<size_t>(loop.stage)][static_cast<size_t>(loop.iterator)];
        break;
      }
      case AtomKind::kFloorDiv:
        value = ir::floordiv(to_expr(atom.a, vars), atom.c);
        break;
      case AtomKind::kFloorMod:
        value = ir::floormod(to_expr(atom.a, vars), atom.c);
        break;
      case AtomKind::kMin:
        value = ir::min(to_expr(atom.a, vars), to_expr(atom.b, vars));
        break;
      case AtomKind::kMax:
        value = ir::max(to_expr(atom.a, vars), to_expr(atom.b, vars));
        break;
    }
    if (term.coefficient != 1) value = std::move(value) * ir::Expr(term.coefficient);
    sum = sum.defined() ? std::move(sum) + std::move(value) : std::move(value);
  }
  if (!sum.defined()) return s.constant;
  if (s.constant != 0) sum = std::move(sum) + ir::Expr(s.constant);
  return sum;
}

}  // namespace tensorsmith::sched
