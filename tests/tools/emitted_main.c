/* Runs a model that `tensorsmith compile --emit c` wrote:
     emitted_main weights.bin output.raw OUTPUT_BYTES input.raw
   With -DTWO_MODELS it runs two models, of `--prefix first` and `--prefix second`, each with four such arguments.
   It works without our runtime, as a user might: one thread, memory from malloc. */
#include <stdio.h>
#include <stdlib.h>

#ifdef TWO_MODELS
#include "first_model.h"
#include "second_model.h"
#else
#include "tensorsmith_model.h"
#endif

typedef void (*Model)(const TensorsmithKernelContext* context, const void* weights, void* arena,
                      const void* const* inputs, void* const* outputs);

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

static void run(Model model, size_t arena_bytes, size_t shared_bytes, size_t thread_bytes, char** arguments) {
  TensorsmithKernelContext context = {0};
  const void* inputs[1];
  void* outputs[1];
  const size_t output_bytes = (size_t)atol(arguments[2]);
  FILE* file;
  context.parallel_for = run_all;
  context.num_threads = 1;
  context.shared_workspace = block(shared_bytes);
  context.thread_workspace = block(thread_bytes);
  inputs[0] = contents(arguments[3]);
  outputs[0] = block(output_bytes);
  model(&context, contents(arguments[0]), block(arena_bytes), inputs, outputs);
  file = fopen(arguments[1], "wb");
  if (file == NULL || fwrite(outputs[0], 1, output_bytes, file) != output_bytes) exit(5);
  if (fclose(file) != 0) exit(6);
}

#define RUN(name, NAME, arguments)                                                 \
  run(name##_model, NAME##_MODEL_ARENA_BYTES, NAME##_MODEL_SHARED_WORKSPACE_BYTES, \
      NAME##_MODEL_THREAD_WORKSPACE_BYTES, arguments)

int main(int argc, char** argv) {
#ifdef TWO_MODELS
  if (argc != 9) return 1;
  RUN(first, FIRST, argv + 1);
  RUN(second, SECOND, argv + 5);
#else
  if (argc != 5) return 1;
  RUN(tensorsmith, TENSORSMITH, argv + 1);
#endif
  return 0;
}
