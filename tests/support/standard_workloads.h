// Standard workloads by name, for tests and benchmarks of all parts. All are f32 unless they say
// otherwise, weights are constant placeholders, and every one passes ir::verify.
#pragma once

#include <cstdint>

#include "ir/workload.h"

namespace tensorsmith::test::standard {

// C[i, j] = sum_k A[i, k] * B[k, j]; operations A, B, C. Integer inputs accumulate in i32.
ir::Workload matmul(int64_t m, int64_t n, int64_t k, ir::DType dtype = ir::DType::kF32);

// C[b, i, j] = sum_k A[b, i, k] * B[b, k, j]
ir::Workload batch_matmul(int64_t b, int64_t m, int64_t n, int64_t k);

// dense = X[m, k] * W[n, k]^T, bias_add, relu: operations X, W, B, dense, bias_add, relu.
ir::Workload dense_bias_relu(int64_t m, int64_t n, int64_t k);

struct Conv2d {
  int64_t n = 1, h = 8, w = 8, ci = 4, co = 4, kh = 3, kw = 3;
  int64_t stride = 1, pad = 1, dilation = 1, groups = 1;
  int64_t out_h() const { return (h + 2 * pad - dilation * (kh - 1) - 1) / stride + 1; }
  int64_t out_w() const { return (w + 2 * pad - dilation * (kw - 1) - 1) / stride + 1; }
};
// NCHW: X[n, ci, h, w], W[co, ci / groups, kh, kw] (constant), pad (absent if pad = 0), conv[n, co, oh, ow].
ir::Workload conv2d(const Conv2d& shape);
// conv2d with bias and relu after it: operations X, W, B, pad, conv, bias_add, relu.
ir::Workload conv2d_bias_relu(const Conv2d& shape);
// conv2d with bias and x * sigmoid(x) after it, as exporters write it: operations X, W, B, pad, conv,
// bias_add, sigmoid, silu.
ir::Workload conv2d_bias_silu(const Conv2d& shape);
// One filter per channel: X[n, c, h, w], W[c, kh, kw], pad, depthwise, with ci channels; the shape's
// co and groups are ignored.
ir::Workload depthwise_conv2d(const Conv2d& shape);

// The sum over the columns, divided by their number: sum[i], mean[i].
ir::Workload row_means(int64_t rows, int64_t cols);
// Four stages over the columns: max, exp (of the difference), sum, div.
ir::Workload softmax(int64_t rows, int64_t cols);
// mean, centered, variance, normalized with scale and shift (constants gamma, beta).
ir::Workload layernorm(int64_t rows, int64_t cols);
// Padding is read as the lowest value, inside the reduction's body.
ir::Workload max_pool(int64_t n, int64_t c, int64_t h, int64_t w, int64_t kernel, int64_t stride,
                      int64_t pad);
// y = tanh(x * a + b) over n elements in three stages.
ir::Workload elementwise_chain(int64_t n);

}  // namespace tensorsmith::test::standard
