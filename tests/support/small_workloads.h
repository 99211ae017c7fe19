// Small workloads of every kind, for tests: each covers something that a schedule must get right.
#pragma once

#include <string>
#include <vector>

#include "base/rng.h"
#include "ir/workload.h"

namespace tensorsmith::test::small {

// C[i, j] = sum_k A[i, k] * B[k, j]; B is constant; then R = max(C + bias, 0) if relu.
ir::Workload matmul(int64_t m, int64_t n, int64_t k, bool relu = false);
// Padded 2d convolution, NCHW, weights OIHW constant, bias and relu: stages X, W, pad, conv, bias,
// out.
ir::Workload conv2d(int64_t channels, int64_t size, int64_t outputs, int64_t kernel, int64_t stride,
                    int64_t pad);
ir::Workload depthwise(int64_t channels, int64_t size, int64_t kernel, int64_t stride, int64_t pad);
// Max, exp(x - max), sum, quotient over the last axis.
ir::Workload softmax(int64_t rows, int64_t columns);
// Values and indices of the largest element of each row, and row sums.
ir::Workload arg_max(int64_t rows, int64_t columns);
// B = A * 2; C = reshape of B; D = C transposed; E = D + 1: floordiv and floormod indices.
ir::Workload reshape_chain(int64_t rows, int64_t columns);
// Rows of a table selected by an index tensor, then scaled: data-dependent reads.
ir::Workload gather(int64_t rows, int64_t columns, int64_t picks);
// Concatenation of two tensors, then a 3-point stencil over the result.
ir::Workload concat_stencil(int64_t left, int64_t right);
// Integer matrix product with 8-bit operands and a 32-bit accumulator.
ir::Workload int8_matmul(int64_t m, int64_t n, int64_t k);
// Products of bf16 elements, summed in f32; results are f32 too. Stages A, B, C, R, where R = C +
// 0.5, and X, W, pad, conv, R, where R = max(conv, 0). W is constant.
ir::Workload bf16_matmul(int64_t m, int64_t n, int64_t k, bool constant_b);
ir::Workload bf16_conv2d(int64_t channels, int64_t size, int64_t outputs, int64_t kernel, int64_t stride,
                         int64_t pad);
// Products of 8-bit integers less zero points, as in quantized models. The rest is random: which
// integers are signed, whether B or W is constant, and whether zero points are absent, literals,
// scalar tensors, or one per row, column or output channel. Stages A, B, (zero points,) A.centered,
// B.centered, C, R, and X, W, (zero points,) pad, W.centered, conv, R.
ir::Workload quantized_matmul(int64_t m, int64_t n, int64_t k, Rng& rng);
ir::Workload quantized_conv2d(int64_t channels, int64_t size, int64_t outputs, int64_t kernel, int64_t stride,
                              int64_t pad, Rng& rng);
// A scalar: the sum of all elements.
ir::Workload total_sum(int64_t rows, int64_t columns);

// One of the above with small random sizes.
ir::Workload random(Rng& rng);

}  // namespace tensorsmith::test::small
