/* The contract between generated kernels and whoever runs them. Plain C; versioned. */
#ifndef TENSORSMITH_RUNTIME_KERNEL_ABI_H_
#define TENSORSMITH_RUNTIME_KERNEL_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENSORSMITH_KERNEL_ABI_VERSION 2
/* Alignment of every buffer and workspace, in bytes. */
#define TENSORSMITH_BUFFER_ALIGNMENT 64

/* Body of a parallel loop: iterations [begin, end) on worker `thread` (0 .. num_threads - 1). */
typedef void (*TensorsmithParallelBody)(void* closure, int64_t begin, int64_t end, int32_t thread);

typedef struct TensorsmithKernelContext {
  /* Runs body over [0, n) split among the threads and returns when all is done. Never nested by generated
   * code. */
  void (*parallel_for)(void* pool, int64_t n, TensorsmithParallelBody body, void* closure);
  void* pool;
  int32_t num_threads;
  int32_t reserved;
  /* Aligned scratch memory: one block for the call, and one block per thread at
     thread_workspace + thread * thread_workspace_stride. Sizes are in the kernel's information. */
  void* shared_workspace;
  void* thread_workspace;
  int64_t thread_workspace_stride;
} TensorsmithKernelContext;

/* buffers: inputs then outputs of the program, aligned. Generated kernels call nothing outside
   themselves but context->parallel_for (math functions are inlined), so an object needs no libraries. */
typedef void (*TensorsmithKernel)(const TensorsmithKernelContext* context, void* const* buffers);

/* A kernel states its demands on the caller beside it in the object, as `const int64_t SYMBOL_info[]`:
   these fields, followed by the number of bytes that the kernel may access in each buffer. */
enum {
  TENSORSMITH_INFO_ABI_VERSION = 0, /* TENSORSMITH_KERNEL_ABI_VERSION */
  TENSORSMITH_INFO_INPUTS = 1,      /* buffers that the kernel reads; they come first */
  TENSORSMITH_INFO_OUTPUTS = 2,     /* buffers that it writes */
  TENSORSMITH_INFO_SHARED_BYTES = 3,
  TENSORSMITH_INFO_THREAD_BYTES = 4,
  TENSORSMITH_INFO_BUFFER_BYTES = 5 /* bytes of the first buffer */
};
#define TENSORSMITH_INFO_SUFFIX "_info"

#ifdef __cplusplus
}
#endif
#endif
