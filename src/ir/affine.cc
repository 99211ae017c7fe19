#include "ir/affine.h"

#include <algorithm>

namespace tensorsmith::ir {

namespace {

__extension__ using Wide = __int128;

struct NoAtom : AffineAtom<AffineSum<int32_t>> {};
// Sums alone: nothing is asked about atoms.
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

int64_t saturating_multiply_add(int64_t a, int64_t b, int64_t factor) {
  const Wide value = a + static_cast<Wide>(b) * factor;
  return static_cast<int64_t>(std::clamp<Wide>(value, -kIndexLimit, kIndexLimit));
}

int64_t checked_multiply_add(int64_t a, int64_t b, int64_t factor, bool* overflowed) {
  const Wide value = a + static_cast<Wide>(b) * factor;
  if (value <= kIndexLimit && value >= -kIndexLimit) return static_cast<int64_t>(value);
  *overflowed = true;
  return 0;
}

}  // namespace tensorsmith::ir
