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
  /* Splits [0, n) into ranges, calls the body for each range on one of the threads, and returns when all
     calls have ended. Generated code never calls this function from a body. */
  void (*parallel_for)(void* pool, int64_t n, TensorsmithParallelBody body, void* closure);
  void* pool;
  int32_t num_threads;
  int32_t reserved;
  /* Aligned scratch memory: one block for the whole call, and one block for each thread, at
     thread_workspace + thread * thread_workspace_stride. SYMBOL_info states how many bytes a kernel needs. */
  void* shared_workspace;
  void* thread_workspace;
  int64_t thread_workspace_stride;
} TensorsmithKernelContext;

/* buffers: the inputs of the program, then its outputs; all are aligned. A kernel calls
   context->parallel_for. Kernels that LLVM compiled call nothing else, so their objects need no library.
   Kernels in C also call functions of math.h, so they need libm. */
typedef void (*TensorsmithKernel)(const TensorsmithKernelContext* context, void* const* buffers);

/* For a kernel SYMBOL, the object also exports `const int64_t SYMBOL_info[]`, which states what the kernel
   requires of its caller. Its elements are the fields below. From TENSORSMITH_INFO_BUFFER_BYTES on, there
   is one element for each buffer: the number of bytes that the kernel may access in it. */
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
