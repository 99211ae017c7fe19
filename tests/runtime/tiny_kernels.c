/* Hand-written kernels of a two-layer toy model: t = x * w (4x8 by 8x16), y = max(t + b, 0), c = number of y > 0.
 */
#include "runtime/kernel_abi.h"

/* The kernels of another model have another factor. */
#ifndef TINY_FACTOR
#define TINY_FACTOR 1
#endif

struct Matmul {
  const float* x;
  const float* w;
  float* t;
};

static void matmul_rows(void* closure, int64_t begin, int64_t end, int32_t thread) {
  const struct Matmul* m = (const struct Matmul*)closure;
  (void)thread;
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < 16; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < 8; ++k) sum += m->x[i * 8 + k] * m->w[k * 16 + j];
      m->t[i * 16 + j] = sum;
    }
  }
}

/* buffers: x, w, t */
const int64_t matmul_info[] = {TENSORSMITH_KERNEL_ABI_VERSION, 2, 1, 0, 0, 128, 512, 256};
void matmul(const TensorsmithKernelContext* context, void* const* buffers) {
  struct Matmul m = {(const float*)buffers[0], (const float*)buffers[1], (float*)buffers[2]};
  context->parallel_for(context->pool, 4, matmul_rows, &m);
}

struct Relu {
  const TensorsmithKernelContext* context;
  const float* t;
  const float* b;
  float* y;
};

static void relu_rows(void* closure, int64_t begin, int64_t end, int32_t thread) {
  const struct Relu* r = (const struct Relu*)closure;
  /* Uses this thread's workspace, so that threads that share one would give wrong results. */
  float* row = (float*)((char*)r->context->thread_workspace + thread * r->context->thread_workspace_stride);
  int32_t* counts = (int32_t*)r->context->shared_workspace;
  for (int64_t i = begin; i < end; ++i) {
    int32_t count = 0;
    for (int64_t j = 0; j < 16; ++j) row[j] = r->t[i * 16 + j] + r->b[j];
    for (int64_t j = 0; j < 16; ++j) {
      r->y[i * 16 + j] = row[j] > 0 ? TINY_FACTOR * row[j] : 0;
      count += row[j] > 0;
    }
    counts[i] = count;
  }
}

/* buffers: t, b, y, c; workspaces: 4 i32 shared, 16 f32 per thread */
const int64_t bias_relu_count_info[] = {TENSORSMITH_KERNEL_ABI_VERSION, 2, 2, 16, 64, 256, 64, 256, 4};
void bias_relu_count(const TensorsmithKernelContext* context, void* const* buffers) {
  struct Relu r = {context, (const float*)buffers[0], (const float*)buffers[1], (float*)buffers[2]};
  const int32_t* counts = (const int32_t*)context->shared_workspace;
  int32_t* c = (int32_t*)buffers[3];
  context->parallel_for(context->pool, 4, relu_rows, &r);
  *c = counts[0] + counts[1] + counts[2] + counts[3];
}
