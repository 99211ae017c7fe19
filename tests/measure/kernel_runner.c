/* LIBRARY RUNS BYTES...: loads the kernel "kernel" and calls it RUNS times, with buffers of these sizes; the
   last two are its workspaces. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/kernel_abi.h"

static void run_here(void* pool, int64_t n, TensorsmithParallelBody body, void* closure) {
  (void)pool;
  body(closure, 0, n, 0);
}

int main(int argc, char** argv) {
  void* blocks[32];
  TensorsmithKernelContext context;
  int i, runs;
  void* library = argc > 4 && argc < 32 ? dlopen(argv[1], RTLD_NOW) : NULL;
  TensorsmithKernel kernel = library ? (TensorsmithKernel)dlsym(library, "kernel") : NULL;
  if (!kernel) return 1;
  for (i = 3; i < argc; ++i) {
    const size_t bytes = ((size_t)atoll(argv[i]) / 4096 + 3) * 4096;
    blocks[i - 3] = aligned_alloc(4096, bytes);
    if (!blocks[i - 3]) return 1;
    memset(blocks[i - 3], 0, bytes);
  }
  memset(&context, 0, sizeof context);
  context.parallel_for = run_here;
  context.num_threads = 1;
  context.shared_workspace = blocks[argc - 5];
  context.thread_workspace = blocks[argc - 4];
  for (runs = atoi(argv[2]); runs > 0; --runs) kernel(&context, blocks);
  return 0;
}
