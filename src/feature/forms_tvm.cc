// The results of TVM's simplifier and feature extractor for an index, where they differ from our
// forms.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "feature/forms.h"

namespace tensorsmith::feature {

Form FormArena::rewritten(Form f) {
  bool changed = false;
  Form out = constant(f.constant);
  for (uint32_t i = 0; i < f.count; ++i) {
    const Term term = terms_[f.begin + i];
    const Kind kind = atom(term).kind;
    if (kind != Kind::kFloorDiv && kind != Kind::kFloorMod) {
      Form single = start(0);
      push(single, term.atom, 1);
      out = add(out, single, term.coefficient);
      continue;
    }
    const Form value = rewritten_atom(term);
    changed = changed || value.constant != 0 || value.count != 1 || terms_[value.begin].atom != term.atom;
    out = add(out, value, term.coefficient);
  }
  return changed ? out : f;
}

Form FormArena::rewritten_atom(Term term) {
  const Atom old = atom(term);
  const auto single = [&](const Form& f) {
    return f.constant == 0 && f.count == 1 && terms_[f.begin].coefficient == 1;
  };
  if (old.kind == Kind::kFloorDiv) {
    const Form inner = rewritten(old.a);
    if (const auto whole = absorbed(inner, old.c)) return *whole;
    return intern(Kind::kFloorDiv, inner, {}, old.c, old.range);
  }
  // TVM writes floormod(floordiv(x, d), c) as floordiv(floormod(x, c * d), d).
  if (single(old.a)) {
    const Atom quotient = atom(terms_[old.a.begin]);
    if (quotient.kind == Kind::kFloorDiv && quotient.c < kUnknownBound / old.c) {
      const Form x = reduced(rewritten(quotient.a), quotient.c * old.c);
      return intern(Kind::kFloorMod, intern(Kind::kFloorDiv, x, {}, quotient.c, quotient.range), {}, old.c,
                    old.range);
    }
  }
  return intern(Kind::kFloorMod, reduced(rewritten(old.a), old.c), {}, old.c, old.range);
}

// Reduces the coefficients modulo c, in sums of two.
Form FormArena::reduced(Form f, int64_t c) {
  if (f.count + (f.constant != 0 ? 1U : 0U) > 2) return f;
  Form out = start(f.constant);
  for (uint32_t i = 0; i < f.count; ++i) {
    Term term = terms_[f.begin + i];
    term.coefficient %= c;
    if (term.coefficient < 0) term.coefficient += c;
    if (term.coefficient != 0) push(out, term.atom, term.coefficient);
  }
  return out;
}

// Visits the terms in the order in which TVM prints a sum: by factor, then by divisor, then by
// modulus, descending; subtracted terms come last.
void FormArena::find_coefficient(const Form& f, size_t depth, Coefficient& out) const {
  struct Part {
    Term term;
    int64_t divisor = 1, modulus = kUnknownBound;
  };
  std::array<Part, 16> storage;
  size_t count = 0;
  for (const Term& term : terms(f)) {
    if (count == storage.size()) break;
    Part& part = storage[count++];
    part = {term, 1, kUnknownBound};
    const Atom& a = atom(term);
    if (a.kind == Kind::kFloorDiv) part.divisor = a.c;
    if (a.kind != Kind::kFloorMod) continue;
    part.modulus = a.c;
    if (a.a.count == 1 && a.a.constant == 0) {
      const Atom& inner = atom(terms_[a.a.begin]);
      if (inner.kind == Kind::kFloorDiv && terms_[a.a.begin].coefficient == 1) {
        part.divisor = inner.c;
        part.modulus = a.c < kUnknownBound / inner.c ? a.c * inner.c : kUnknownBound;
      }
    }
  }
  const auto parts = std::span(storage).first(count);
  std::stable_sort(parts.begin(), parts.end(), [](const Part& x, const Part& y) {
    if ((x.term.coefficient > 0) != (y.term.coefficient > 0)) return x.term.coefficient > 0;
    if (x.term.coefficient != y.term.coefficient) return x.term.coefficient > y.term.coefficient;
    if (x.divisor != y.divisor) return x.divisor > y.divisor;
    return x.modulus > y.modulus;
  });
  const auto added = [&] {
    if (!out.variable || out.product) return;
    out.sum = true;
    out.value = 1;
  };
  for (size_t i = 0; i < count; ++i) {
    const Term& term = parts[i].term;
    const Atom& a = atom(term);
    if (a.kind == Kind::kVariable || a.kind == Kind::kOpaque) {
      if ((a.loops >> depth & 1) != 0) {
        out.variable = true;
        out.value = 2;
      }
    } else {
      find_coefficient(a.a, depth, out);
      find_coefficient(a.b, depth, out);
    }
    if (std::abs(term.coefficient) != 1 && out.variable && !out.sum) {
      out.product = true;
      out.value = std::abs(term.coefficient);
    }
    if (i > 0 && term.coefficient > 0) added();
  }
  if (f.constant > 0 && count > 0) added();
}

int64_t FormArena::coefficient_guess(const Form& f, size_t depth) const {
  Coefficient found;
  find_coefficient(f, depth, found);
  return found.variable && !found.product && !found.sum ? 1 : found.value;
}

}  // namespace tensorsmith::feature
