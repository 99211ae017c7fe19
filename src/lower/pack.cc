#include <cstring>

#include "lower/lower.h"

namespace tensorsmith::lower {

void pack(const sched::Layout& layout, const std::vector<int64_t>& logical_shape, int element_bytes,
          const void* source, void* destination) {
  // strides[k] = distance in the logical tensor of one step of storage dimension k.
  std::vector<int64_t> logical_strides(logical_shape.size());
  int64_t stride = 1;
  for (size_t d = logical_shape.size(); d-- > 0; stride *= logical_shape[d]) logical_strides[d] = stride;
  const auto bytes = static_cast<size_t>(element_bytes);
  int64_t total = 1;
  for (const sched::LayoutDim& d : layout) total *= d.extent;
  std::vector<int64_t> digits(layout.size(), 0);
  std::vector<int64_t> index(logical_shape.size(), 0);
  auto* out = static_cast<std::byte*>(destination);
  const auto* in = static_cast<const std::byte*>(source);
  for (int64_t flat = 0; flat < total; ++flat, out += bytes) {
    int64_t offset = 0;
    bool inside = true;
    for (size_t d = 0; d < index.size(); ++d) {
      inside = inside && index[d] < logical_shape[d];
      offset += index[d] * logical_strides[d];
    }
    if (inside) {
      std::memcpy(out, in + static_cast<size_t>(offset) * bytes, bytes);
    } else {
      std::memset(out, 0, bytes);
    }
    for (size_t k = layout.size(); k-- > 0;) {
      const auto d = static_cast<size_t>(layout[k].dim);
      index[d] += layout[k].divisor;
      if (++digits[k] < layout[k].extent) break;
      index[d] -= layout[k].divisor * layout[k].extent;
      digits[k] = 0;
    }
  }
}

}  // namespace tensorsmith::lower
