/* Runs a model that `tensorsmith compile --emit c` wrote:
     emitted_main weights.bin output.raw OUTPUT_BYTES input.raw
   Everything by hand, as a user without our runtime would: one thread, memory from malloc. */
#include <stdio.h>
#include <stdlib.h>

#include "tensorsmith_kernels.h"

static void run_all(void* pool, int64_t n, TensorsmithParallelBody body, void* closure) {
  (void)pool;
  body(closure, 0, n, 0);
}

static void* block(size_t bytes) {
  char* memory = malloc(bytes + 2 * TENSORSMITH_BUFFER_ALIGNMENT);
  if (memory == NULL) exit(2);
  memset(memory, 0xff, bytes + 2 * TENSORSMITH_BUFFER_ALIGNMENT);
  return memory + TENSORSMITH_BUFFER_ALIGNMENT - (uintptr_t)memory % TENSORSMITH_BUFFER_ALIGNMENT;
}

static void* contents(const char* path) {
  FILE* file = fopen(path, "rb");
  long bytes;
  void* memory;
  if (file == NULL) exit(3);
  fseek(file, 0, SEEK_END);
  bytes = ftell(file);
  rewind(file);
  memory = block((size_t)bytes);
  if (fread(memory, 1, (size_t)bytes, file) != (size_t)bytes) exit(4);
  fclose(file);
  return memory;
}

int main(int argc, char** argv) {
  TensorsmithKernelContext context = {0};
  const void* inputs[1];
  void* outputs[1];
  size_t output_bytes;
  FILE* file;
  if (argc != 5) return 1;
  output_bytes = (size_t)atol(argv[3]);
  context.parallel_for = run_all;
  context.num_threads = 1;
  context.shared_workspace = block(TENSORSMITH_MODEL_SHARED_WORKSPACE_BYTES);
  context.thread_workspace = block(TENSORSMITH_MODEL_THREAD_WORKSPACE_BYTES);
  inputs[0] = contents(argv[4]);
  outputs[0] = block(output_bytes);
  tensorsmith_model(&context, contents(argv[1]), block(TENSORSMITH_MODEL_ARENA_BYTES), inputs, outputs);
  file = fopen(argv[2], "wb");
  if (file == NULL || fwrite(outputs[0], 1, output_bytes, file) != output_bytes) return 5;
  return fclose(file) == 0 ? 0 : 6;
}
