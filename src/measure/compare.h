// Is a candidate's output right? Comparison with the expected output under a tolerance for another order of
// summation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/dtype.h"
#include "ir/workload.h"

namespace tensorsmith::measure {

// An element passes if |got - expected| <= relative * |expected| + absolute. NaN must be NaN, infinities must
// be equal, and integers and bools must be equal up to `absolute`. At most `allowed` elements may fail:
// results of comparisons or roundings of floats (argmax, quantize) may flip where two values nearly tie.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  int64_t allowed = 0;
};

// For one output of the workload with these expected values. Another order of summation of K terms of similar
// size changes a float sum by about eps * sqrt(K) of the sums' typical size (Higham, Accuracy and Stability
// of Numerical Algorithms, section 4.2), so errors are compared with the root mean square of the output as
// well as with the element: relative 1e-3, absolute 1e-3 * rms for f32. A missing term of K <= 1e5 similar
// ones is still 3 times above that.
Tolerance tolerance_for(const ir::Workload& workload, size_t output, const void* expected);

struct Mismatch {
  int64_t index = 0;  // flat, of the worst element
  double got = 0, expected = 0;
  int64_t count = 0;  // elements that fail
};
// "element 17 is 3.5, expected 2.25 (12 of 4096 elements differ)"
std::string describe(const Mismatch& mismatch, int64_t elements);

// Nothing if got is right.
std::optional<Mismatch> compare(ir::DType dtype, int64_t elements, const void* got, const void* expected,
                                const Tolerance& tolerance);

// Fills the output with what no right result contains: the bitwise complement of the expected element differs
// from it in sign, and is NaN for zero and a number for NaN.
void poison(const void* expected, int64_t bytes, void* output);

}  // namespace tensorsmith::measure
