// TopK. Parameters: dtype, outer, length, inner (the tensor is outer x length x inner, selected along the length), k,
// largest (0 or 1), outputs (1: the values, 2: their indices, 3: both). Buffers: the tensor; the values, the indices (i64),
// best first.
// NaN counts as the largest value, and of equal elements the first is better.
#include <algorithm>
#include <bit>

#include "runtime/routine.h"
#include "runtime/routines/support.h"

namespace tensorsmith::runtime {

namespace {

struct Selection {
  DType dtype = DType::kF32;
  int64_t outer = 0, length = 0, inner = 0, k = 0;
  bool largest = true, values = true, indices = true;
};

Result<Selection> read_selection(std::span<const int64_t> parameters) {
  ParameterReader reader(parameters);
  Selection s;
  s.dtype = reader.dtype();
  s.outer = reader.extent();
  s.length = reader.between(0, INT32_MAX);
  s.inner = reader.extent();
  s.k = reader.between(0, s.length);
  s.largest = reader.flag();
  const int64_t outputs = reader.between(1, 3);
  s.values = (outputs & 1) != 0;
  s.indices = (outputs & 2) != 0;
  reader.times(reader.times(s.outer, s.length), s.inner);
  TS_RETURN_IF_ERROR(reader.finish());
  return s;
}

// An element of a line: the smaller key is better, then the smaller place.
struct Candidate {
  uint64_t key;
  uint64_t place;
  friend auto operator<=>(const Candidate&, const Candidate&) = default;
};

// Elements that are kept until the best k of them are selected: that takes a time in proportion to them, so that with
// at least as many again, selecting costs a few operations an element.
int64_t kept_elements(const Selection& s) { return std::min(s.length, 2 * s.k + 1024); }

// Returns a number of the same order as the elements, in which NaN comes last and -0 equals 0. All bits of a negative
// float are inverted, only the sign of another; without a branch, since signs at random are mispredicted.
template <class T>
uint64_t order_of(T x) {
  if constexpr (std::is_same_v<T, float>) {
    if (x != x) return UINT32_MAX;
    const auto bits = std::bit_cast<uint32_t>(x + 0.0F);
    return bits ^ (static_cast<uint32_t>(std::bit_cast<int32_t>(bits) >> 31) | uint32_t{1} << 31);
  } else if constexpr (std::is_same_v<T, double>) {
    if (x != x) return UINT64_MAX;
    const auto bits = std::bit_cast<uint64_t>(x + 0.0);
    return bits ^ (static_cast<uint64_t>(std::bit_cast<int64_t>(bits) >> 63) | uint64_t{1} << 63);
  } else if constexpr (kShort<T>) {
    return order_of(Element<T>::load(x));
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(x)) ^ uint64_t { 1 } << 63;
  } else {
    return x;
  }
}

Result<RoutineDemands> selection_demands(std::span<const int64_t> parameters) {
  TS_ASSIGN_OR_RETURN(const Selection s, read_selection(parameters));
  const int64_t lines = s.outer * s.inner;
  RoutineDemands demands;
  demands.buffer_bytes = {bytes_of(s.dtype, lines * s.length)};
  if (s.values) demands.buffer_bytes.push_back(bytes_of(s.dtype, lines * s.k));
  if (s.indices) demands.buffer_bytes.push_back(lines * s.k * 8);
  demands.outputs = demands.buffer_bytes.size() - 1;
  demands.thread_bytes = kept_elements(s) * static_cast<int64_t>(sizeof(Candidate));
  demands.operations = static_cast<double>(lines) * static_cast<double>(s.length + 20 * s.k);
  return demands;
}

// Selects the best elements of one line, whose elements are `stride` apart in all tensors.
template <class T>
void select_line(const Selection& s, const T* x, T* values, int64_t* indices, int64_t stride,
                 Candidate* kept) {
  const int64_t room = kept_elements(s);
  const uint64_t flip = s.largest ? UINT64_MAX : 0;
  int64_t count = 0;
  uint64_t worst = UINT64_MAX;  // key of the worst candidate that may still be selected
  for (int64_t i = 0; i < s.length; ++i) {
    const uint64_t key = order_of(x[i * stride]) ^ flip;
    // A later element is better than none of the same key.
    if (key >= worst && count >= s.k && worst != UINT64_MAX) continue;
    if (count == room) {
      std::nth_element(kept, kept + s.k - 1, kept + count);
      worst = kept[s.k - 1].key;
      count = s.k;
      if (key >= worst) continue;
    }
    kept[count++] = {key, static_cast<uint64_t>(i)};
  }
  if (count > s.k) std::nth_element(kept, kept + s.k, kept + count);
  std::sort(kept, kept + s.k);
  for (int64_t j = 0; j < s.k; ++j) {
    const auto place = static_cast<int64_t>(kept[j].place);
    if (s.values) values[j * stride] = x[place * stride];
    if (s.indices) indices[j * stride] = place;
  }
}

Status run_selection(const TensorsmithKernelContext& context, std::span<const int64_t> parameters,
                     void* const* buffers) {
  TS_ASSIGN_OR_RETURN(const Selection s, read_selection(parameters));
  if (s.k == 0) return {};
  const int64_t lines = s.outer * s.inner;
  with_type(s.dtype, [&]<class T>(T) {
    const T* x = static_cast<const T*>(buffers[0]);
    T* values = s.values ? static_cast<T*>(buffers[1]) : nullptr;
    auto* indices = s.indices ? static_cast<int64_t*>(buffers[s.values ? 2 : 1]) : nullptr;
    parallel(context, lines, static_cast<double>(lines) * s.length,
             [&](int64_t begin, int64_t end, int thread) {
               auto* kept = static_cast<Candidate*>(thread_workspace(context, thread));
               for (int64_t line = begin; line < end; ++line) {
                 const int64_t o = line / s.inner, i = line % s.inner;
                 const int64_t out = o * s.k * s.inner + i;
                 select_line(s, x + o * s.length * s.inner + i, s.values ? values + out : nullptr,
                             s.indices ? indices + out : nullptr, s.inner, kept);
               }
             });
  });
  return {};
}

}  // namespace

const Routine kTopK = {"top_k", selection_demands, run_selection};

}  // namespace tensorsmith::runtime
