// Convolutions of short types, or of f32 that is rounded to TF32, as graphs of such models give them to tensor cores.
#pragma once

#include <cstdint>

#include "ir/dtype.h"
#include "ir/workload.h"

namespace tensorsmith::test {

struct Convolution {
  ir::DType dtype = ir::DType::kF16;  // of data and weights; sums are f32, of bytes i32
  int64_t n = 1, channels = 32, outputs = 32;
  int64_t height = 16, width = 16;  // of the input
  int64_t kernel = 3, stride = 1, pad = 1;
  // X[n, y, x, c], W[ky, kx, c, o] and the output [n, y, x, o]; else X[n, c, y, x], W[o, c, ky, kx] and [n, o, y, x].
  // Weights of bytes are W[o, ky, kx, c].
  bool channels_last = false;
  bool epilogue = false;  // of floats: + 1, not below 0, rounded to dtype
};

// "X", "W" (constant), with padding "pad", "C" and with an epilogue "R".
ir::Workload convolution(const Convolution& c);

}  // namespace tensorsmith::test
