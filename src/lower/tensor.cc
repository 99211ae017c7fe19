#include <cstring>

#include "lower/interpreter.h"

namespace tensorsmith::lower {

Tensor Tensor::zeros(ir::DType dtype, std::vector<int64_t> shape) {
  Tensor t;
  t.dtype = dtype;
  t.shape = std::move(shape);
  t.data.resize(t.num_bytes());
  return t;
}

int64_t Tensor::num_elements() const {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

size_t Tensor::num_bytes() const { return ir::bytes_of(dtype, num_elements()); }

ir::Scalar Tensor::at(int64_t flat) const {
  TS_CHECK(flat >= 0 && flat < num_elements(), "Tensor::at out of range");
  return ir::load_scalar(dtype, data.data() + flat * ir::bytes_of(dtype));
}

void Tensor::set(int64_t flat, ir::Scalar value) {
  TS_CHECK(flat >= 0 && flat < num_elements(), "Tensor::set out of range");
  TS_CHECK(value.dtype == dtype, "Tensor::set with another dtype");
  ir::store_scalar(value, data.data() + flat * ir::bytes_of(dtype));
}

Tensor random_tensor(ir::DType dtype, std::vector<int64_t> shape, Rng& rng, int64_t index_limit) {
  Tensor t = Tensor::zeros(dtype, std::move(shape));
  const int64_t n = t.num_elements();
  if (dtype == ir::DType::kF32) {  // a faster version of the loop below with the same values, because weights
                                   // have hundreds of millions
    for (int64_t k = 0; k < n; ++k) {
      const auto value = static_cast<float>(2 * rng.uniform() - 1);
      std::memcpy(t.data.data() + k * sizeof value, &value, sizeof value);
    }
    return t;
  }
  for (int64_t k = 0; k < n; ++k) {
    if (ir::is_float(dtype)) {
      t.set(k, ir::scalar_float(dtype, 2 * rng.uniform() - 1));
    } else if (index_limit > 0) {
      t.set(k, ir::scalar_int(dtype, rng.uniform_int(0, index_limit - 1)));
    } else if (dtype == ir::DType::kBool) {
      t.set(k, ir::scalar_int(dtype, rng.uniform_int(0, 1)));
    } else {
      t.set(k, ir::scalar_int(dtype, rng.uniform_int(ir::is_signed_int(dtype) ? -8 : 0, 8)));
    }
  }
  return t;
}

}  // namespace tensorsmith::lower
