// Preparation of constants ahead of time.
#include <cstring>
#include <span>
#include <utility>

#include "lower/lower.h"

namespace tensorsmith::lower {

void pack(const sched::Layout& layout, const std::vector<int64_t>& logical_shape, int element_bytes,
          const void* source, void* destination) {
  // logical_strides[d] = distance in elements of one step of the logical dimension d.
  std::vector<int64_t> logical_strides(logical_shape.size());
  int64_t stride = 1;
  for (size_t d = logical_shape.size(); d-- > 0; stride *= logical_shape[d]) logical_strides[d] = stride;
  const size_t bytes = element_bytes;
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
      std::memcpy(out, in + offset * element_bytes, bytes);
    } else {
      std::memset(out, 0, bytes);
    }
    for (size_t k = layout.size(); k-- > 0;) {
      const size_t d = layout[k].dim;
      index[d] += layout[k].divisor;
      if (++digits[k] < layout[k].extent) break;
      index[d] -= layout[k].divisor * layout[k].extent;
      digits[k] = 0;
    }
  }
}

Result<Tensor> prepare(const PreparedConstant& constant, const Tensor& source) {
  Tensor transformed;
  if (constant.transform) {
    TS_ASSIGN_OR_RETURN(std::vector<Tensor> made, evaluate(*constant.transform, std::span(&source, 1)));
    transformed = std::move(made.front());
  }
  const Tensor& logical = constant.transform ? transformed : source;
  if (!constant.layout) return logical;
  std::vector<int64_t> shape;
  int64_t bytes = ir::bytes_of(logical.dtype);
  for (const sched::LayoutDim& d : *constant.layout) {
    if (d.dim < 0 || std::cmp_greater_equal(d.dim, logical.shape.size()) || d.divisor < 1 || d.extent < 1 ||
        bytes > (int64_t{1} << 40) / d.extent)
      return Error{ErrorCode::kInvalidArgument, "", "the layout of a prepared constant is out of range"};
    bytes *= d.extent;
    shape.push_back(d.extent);
  }
  Tensor packed = Tensor::zeros(logical.dtype, std::move(shape));
  pack(*constant.layout, logical.shape, ir::bytes_of(logical.dtype), logical.data.data(), packed.data.data());
  return packed;
}

}  // namespace tensorsmith::lower
