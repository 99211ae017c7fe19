// Convolutions of 16- and 8-bit types, or of f32 rounded to TF32, in the form that graphs of such
// models pass to tensor cores.
#pragma once

#include <cstdint>

#include "ir/dtype.h"
#include "ir/workload.h"

namespace tensorsmith::test {

struct Convolution {
  ir::DType dtype = ir::DType::kF16;  // of data and weights; sums are f32, for bytes i32
  int64_t n = 1, channels = 32, outputs = 32;
  int64_t height = 16, width = 16;  // of the input
  int64_t kernel = 3, stride = 1, pad = 1;
  // True: X[n, y, x, c], W[ky, kx, c, o] and the output [n, y, x, o]; false: X[n, c, y, x], W[o, c,
  // ky, kx] and [n, o, y, x]. Weights of bytes are W[o, ky, kx, c].
  bool channels_last = false;
  bool epilogue = false;  // for floats: + 1, clamped to >= 0, rounded to dtype
};

// Stages "X", "W" (constant), "pad" if there is padding, "C", and "R" if there is an epilogue.
ir::Workload convolution(const Convolution& c);

}  // namespace tensorsmith::test
