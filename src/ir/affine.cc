#include "ir/affine.h"

namespace tensorsmith::ir {

namespace {

struct NoAtom : AffineAtom<AffineSum<int32_t>> {};
// Plain sums: nothing is known about their atoms.
class PlainSums : public AffineValues<PlainSums, NoAtom> {};

}  // namespace

AffineSum<int32_t> operator+(const AffineSum<int32_t>& a, const AffineSum<int32_t>& b) {
  return PlainSums().add(a, b);
}
AffineSum<int32_t> operator-(const AffineSum<int32_t>& a, const AffineSum<int32_t>& b) {
  return PlainSums().add(a, b, -1);
}
AffineSum<int32_t> operator*(const AffineSum<int32_t>& a, int64_t factor) {
  return PlainSums().scale(a, factor);
}

}  // namespace tensorsmith::ir
