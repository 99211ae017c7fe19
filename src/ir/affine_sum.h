// Affine sums of index values. ir/affine.h computes with them.
#pragma once

#include <cstdint>
#include <vector>

namespace tensorsmith::ir {

// Index values of this magnitude and beyond are not computed: a range that reaches it is unknown.
inline constexpr int64_t kIndexLimit = int64_t{1} << 60;

template <class AtomType>
struct AffineTerm {
  AtomType atom{};
  int64_t coefficient = 0;
  friend bool operator==(const AffineTerm&, const AffineTerm&) = default;
};

// constant + sum(coefficient * atom). No atom occurs twice, and no coefficient is 0. Terms are
// ordered by their atoms unless the user defines another order.
template <class AtomType, class TermList = std::vector<AffineTerm<AtomType>>>
struct AffineSum {
  using Term = AffineTerm<AtomType>;
  int64_t constant = 0;
  TermList terms;

  AffineSum() = default;
  AffineSum(int64_t value) : constant(value) {}  // NOLINT(google-explicit-constructor)
  bool is_constant() const { return terms.empty(); }
  friend bool operator==(const AffineSum&, const AffineSum&) = default;
};

}  // namespace tensorsmith::ir
