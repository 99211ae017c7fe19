// Compares a candidate's output with the expected output, with a tolerance for other summation
// orders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/dtype.h"
#include "ir/workload.h"

namespace tensorsmith::measure {

// An element passes if |got - expected| <= relative * |expected| + absolute. NaN must match NaN,
// infinities must be equal, and integers and bools must be equal up to `absolute`. At most
// `allowed` elements may fail, because comparisons and roundings of floats (argmax, quantize) can
// flip where two values nearly tie.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  int64_t allowed = 0;
};

// Returns the tolerance for one output of the workload with these expected values. Another
// summation order of K terms of similar size changes a float sum by about eps * sqrt(K) times the
// typical size of the sums (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2).
// So errors are compared with the root mean square of the output as well as with the element:
// relative 1e-3, absolute 1e-3 * rms for f32. A missing term among K <= 1e5 similar ones still
// exceeds that by a factor of 3.
Tolerance tolerance_for(const ir::Workload& workload, size_t output, const void* expected);

struct Mismatch {
  int64_t index = 0;  // flat index of the worst element
  double got = 0, expected = 0;
  int64_t count = 0;  // elements that fail
};
// Returns for example "element 17 is 3.5, expected 2.25 (12 of 4096 elements differ)".
std::string describe(const Mismatch& mismatch, int64_t elements);

// Returns nullopt if `got` is correct.
std::optional<Mismatch> compare(ir::DType dtype, int64_t elements, const void* got, const void* expected,
                                const Tolerance& tolerance);

// Fills the output with values that no correct result contains: the bitwise complement of the
// expected element differs from it in sign, and is NaN where zero is expected and a number where
// NaN is expected.
void poison(const void* expected, int64_t bytes, void* output);

}  // namespace tensorsmith::measure
