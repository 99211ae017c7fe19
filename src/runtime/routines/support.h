// Tools of all routines: reading of parameters, element types, parallel loops.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "base/dtype.h"
#include "base/result.h"
#include "runtime/kernel_abi.h"

namespace tensorsmith::runtime {

// Most elements of a tensor, and most bytes: products of two extents below it fit into 64 bits.
inline constexpr int64_t kMostElements = int64_t{1} << 40;

// Reads parameters in their order. The first fault is kept, and later reads return 1.
class ParameterReader {
 public:
  explicit ParameterReader(std::span<const int64_t> parameters) : rest_(parameters) {}

  int64_t between(int64_t least, int64_t most) {
    if (rest_.empty()) return fault("a parameter is missing", least);
    const int64_t value = rest_.front();
    rest_ = rest_.subspan(1);
    if (value < least || value > most) return fault("a parameter is out of range", least);
    return value;
  }
  int64_t extent() { return between(0, kMostElements); }
  bool flag() { return between(0, 1) != 0; }
  DType dtype() { return static_cast<DType>(between(0, static_cast<int64_t>(kDTypes.size()) - 1)); }
  // Multiplies by an extent, up to kMostElements.
  int64_t times(int64_t a, int64_t b) {
    if (b != 0 && a > kMostElements / b) return fault("the tensors are too large", 1);
    return a * b;
  }
  // Returns the fault, or that parameters are left.
  Status finish() {
    if (why_.empty() && !rest_.empty()) why_ = "has too many parameters";
    return why_.empty() ? Status() : Status(Error{ErrorCode::kCorrupt, "", why_});
  }

 private:
  int64_t fault(const char* why, int64_t otherwise) {
    if (why_.empty()) why_ = why;
    return otherwise;
  }

  std::span<const int64_t> rest_;
  std::string why_;
};

// Calls f(begin, end, thread) for ranges of [0, n); with one thread if there are fewer than `grain` operations in
// total.
template <class F>
void parallel(const TensorsmithKernelContext& context, int64_t n, double operations, F&& f) {
  // Waking a thread takes as long as some ten thousand operations.
  constexpr double kGrain = 32768;
  if (n <= 0) return;
  if (context.num_threads <= 1 || n == 1 || operations < kGrain) {
    f(int64_t{0}, n, 0);
    return;
  }
  using Body = std::remove_reference_t<F>;
  const auto body = [](void* closure, int64_t begin, int64_t end, int32_t thread) {
    (*static_cast<Body*>(closure))(begin, end, thread);
  };
  context.parallel_for(context.pool, n, body, &f);
}

inline void* thread_workspace(const TensorsmithKernelContext& context, int thread) {
  return static_cast<char*>(context.thread_workspace) + thread * context.thread_workspace_stride;
}

// bf16, as it is stored.
struct BFloat16 {
  uint16_t bits;
};

inline float widen(BFloat16 x) {
  const uint32_t bits = uint32_t{x.bits} << 16;
  float result = 0;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}
// Rounds to nearest even; NaN stays NaN.
inline BFloat16 rounded(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  if (x != x) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

// The type that elements of type T are computed in, and conversions. Integers are computed as unsigned ones,
// which wrap around.
template <class T>
struct Element {
  using Computed =
      typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  static Computed load(T x) { return static_cast<Computed>(x); }
  static T store(Computed x) { return static_cast<T>(x); }
};
template <>
struct Element<_Float16> {
  using Computed = float;
  static float load(_Float16 x) { return static_cast<float>(x); }
  static _Float16 store(float x) { return static_cast<_Float16>(x); }
};
template <>
struct Element<BFloat16> {
  using Computed = float;
  static float load(BFloat16 x) { return widen(x); }
  static BFloat16 store(float x) { return rounded(x); }
};

// Types that are only used for storage: f16 and bf16.
template <class T>
inline constexpr bool kShort =
    std::is_same_v<typename Element<T>::Computed, float> && !std::is_same_v<T, float>;

// A product that wraps around; integers that are shorter than int would be multiplied as signed ones.
template <class C>
C product_of(C a, C b) {
  if constexpr (std::is_integral_v<C>)
    return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

// Calls f(T()) with the type of stored elements.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return f(uint8_t());
    case DType::kI8:
      return f(int8_t());
    case DType::kI16:
      return f(int16_t());
    case DType::kU16:
      return f(uint16_t());
    case DType::kI32:
      return f(int32_t());
    case DType::kU32:
      return f(uint32_t());
    case DType::kI64:
      return f(int64_t());
    case DType::kU64:
      return f(uint64_t());
    case DType::kF16:
      return f(_Float16());
    case DType::kBF16:
      return f(BFloat16());
    case DType::kF32:
      return f(float());
    case DType::kF64:
      return f(double());
  }
  __builtin_unreachable();
}

}  // namespace tensorsmith::runtime
