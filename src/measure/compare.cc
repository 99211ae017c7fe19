#include "measure/compare.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>

#include "ir/scalar.h"

namespace tensorsmith::measure {
namespace {

double element(ir::DType dtype, const void* data, int64_t i) {
  const auto* bytes = static_cast<const std::byte*>(data) + i * ir::bytes_of(dtype);
  // Compares the byte, so that a bool that is neither 0 nor 1 is wrong.
  if (dtype == ir::DType::kBool) return static_cast<unsigned char>(*bytes);
  const ir::Scalar s = ir::load_scalar(dtype, bytes);
  return ir::is_float(dtype) ? s.f : s.i;
}

// Amount by which an element exceeds its tolerance; <= 0 passes.
double excess(double got, double expected, const Tolerance& tolerance) {
  if (std::isnan(got) || std::isnan(expected))
    return std::isnan(got) == std::isnan(expected) ? -1 : std::numeric_limits<double>::infinity();
  if (std::isinf(got) || std::isinf(expected))
    return got == expected ? -1 : std::numeric_limits<double>::infinity();
  return std::abs(got - expected) - tolerance.relative * std::abs(expected) - tolerance.absolute;
}

// Fast path in a loop that vectorizes: counts the elements that may fail. NaN and infinities always
// count; the exact test decides about them.
int64_t suspicious_f32(const float* got, const float* expected, int64_t n, const Tolerance& tolerance) {
  const float relative = tolerance.relative;
  const float absolute = tolerance.absolute;
  int64_t count = 0;
  constexpr int64_t kBlock = 1 << 16;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    int32_t block = 0;
    for (int64_t i = begin, end = std::min(n, begin + kBlock); i < end; ++i) {
      const float limit = 0.999F * (relative * std::abs(expected[i]) + absolute);
      // An infinite limit would let every element pass.
      block += !(std::abs(got[i] - expected[i]) <= limit) || !(limit <= std::numeric_limits<float>::max());
    }
    count += block;
  }
  return count;
}

bool computes_with_floats(const ir::Workload& workload) {
  return std::any_of(workload.operations.begin(), workload.operations.end(), [](const auto& op) {
    return std::any_of(op->outputs.begin(), op->outputs.end(),
                       [](const auto& buffer) { return ir::is_float(buffer->dtype); });
  });
}

// Whether some buffer has less than single precision.
bool has_short_floats(const ir::Workload& workload) {
  return std::any_of(workload.operations.begin(), workload.operations.end(), [](const auto& op) {
    return std::any_of(op->outputs.begin(), op->outputs.end(),
                       [](const auto& buffer) { return ir::is_short_float(buffer->dtype); });
  });
}

}  // namespace

Tolerance tolerance_for(const ir::Workload& workload, size_t output, const void* expected) {
  const ir::Buffer& buffer = workload.outputs[output];
  const int64_t n = buffer->num_elements();
  Tolerance tolerance;
  if (!ir::is_float(buffer->dtype)) {
    if (computes_with_floats(workload)) tolerance.allowed = std::max<int64_t>(n / 500, n >= 8 ? 1 : 0);
    return tolerance;
  }
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double value = element(buffer->dtype, expected, i);
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++finite;
  }
  const double rms = finite > 0 ? std::sqrt(sum / finite) : 0;
  const double precision = has_short_floats(workload) ? 2e-2 : 1e-3;
  tolerance.relative = precision;
  tolerance.absolute = std::isfinite(rms) ? precision * rms : 0;
  return tolerance;
}

std::string describe(const Mismatch& m, int64_t elements) {
  char text[160];
  std::snprintf(text, sizeof text, "element %lld is %.9g, expected %.9g (%lld of %lld elements differ)",
                static_cast<long long>(m.index), m.got, m.expected, static_cast<long long>(m.count),
                static_cast<long long>(elements));
  return text;
}

std::optional<Mismatch> compare(ir::DType dtype, int64_t elements, const void* got, const void* expected,
                                const Tolerance& tolerance) {
  if (elements == 0) return std::nullopt;
  const size_t bytes = ir::bytes_of(dtype, elements);
  if (dtype == ir::DType::kF32) {
    if (suspicious_f32(static_cast<const float*>(got), static_cast<const float*>(expected), elements,
                       tolerance) == 0)
      return std::nullopt;
  } else if (std::memcmp(got, expected, bytes) == 0) {
    return std::nullopt;
  }
  Mismatch worst;
  double worst_excess = 0;
  for (int64_t i = 0; i < elements; ++i) {
    const double g = element(dtype, got, i), e = element(dtype, expected, i);
    const double x = excess(g, e, tolerance);
    if (!(x > 0)) continue;
    if (worst.count++ == 0 || x > worst_excess) {
      worst_excess = x;
      worst.index = i;
      worst.got = g;
      worst.expected = e;
    }
  }
  if (worst.count <= tolerance.allowed) return std::nullopt;
  return worst;
}

void poison(const void* expected, int64_t bytes, void* output) {
  const auto* from = static_cast<const unsigned char*>(expected);
  auto* to = static_cast<unsigned char*>(output);
  for (int64_t i = 0; i < bytes; ++i) to[i] = ~from[i];
}

}  // namespace tensorsmith::measure
