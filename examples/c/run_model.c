/* Runs a compiled model and times it.
 *
 *   run_model DIR THREADS SECONDS [INPUT.raw ...]
 *
 * DIR is what `tensorsmith compile -o DIR` or `tune -o DIR` made. An input without a file is filled with small numbers (f32) or
 * zeros. Prints the median latency of the runs in SECONDS (0: of one run) and the first values of each f32 output. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tensorsmith.h"

enum { MAX_TENSORS = 64, MAX_RUNS = 100000 };

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void fail(const char* place, const char* reason) {
  fprintf(stderr, "run_model: %s: %s\n", place, reason);
  exit(1);
}

/* Tensors that are aligned to 64 bytes are used in place; others would be copied. */
static void* allocate(size_t bytes) {
  const size_t rounded = (bytes + 63) / 64 * 64;
  char* memory = malloc(rounded + 128);
  if (memory == NULL) fail("malloc", "out of memory");
  return memory + (64 - (size_t)memory % 64);
}

static void fill(void* data, size_t bytes, ts_dtype dtype) {
  size_t i;
  unsigned state = 1;
  memset(data, 0, bytes);
  if (dtype != TS_F32) return;
  for (i = 0; i < bytes / sizeof(float); ++i) {
    state = state * 1664525U + 1013904223U;
    ((float*)data)[i] = (float)(state >> 8) / (float)(1U << 24);
  }
}

static void read_file(const char* path, void* data, size_t bytes) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) fail(path, "cannot be opened");
  if (fread(data, 1, bytes, file) != bytes || fgetc(file) != EOF) fail(path, "has not the size of the input");
  fclose(file);
}

int main(int argc, char** argv) {
  static double times[MAX_RUNS];
  const void* inputs[MAX_TENSORS];
  void* outputs[MAX_TENSORS];
  ts_model* model;
  size_t i, k, num_inputs, num_outputs;
  double limit, start;
  int runs = 0;
  if (argc < 4) fail("usage", "run_model DIR THREADS SECONDS [INPUT.raw ...]");
  limit = atof(argv[3]);
  if (ts_model_load(argv[1], atoi(argv[2]), &model) != TS_OK) fail("load", ts_last_error());
  num_inputs = ts_model_num_inputs(model);
  num_outputs = ts_model_num_outputs(model);
  if (num_inputs > MAX_TENSORS || num_outputs > MAX_TENSORS) fail(argv[1], "too many inputs or outputs");
  for (i = 0; i < num_inputs; ++i) {
    const size_t bytes = ts_model_input_bytes(model, i);
    void* data = allocate(bytes);
    if (4 + i < (size_t)argc) {
      read_file(argv[4 + i], data, bytes);
    } else {
      fill(data, bytes, ts_model_input_dtype(model, i));
    }
    inputs[i] = data;
  }
  for (i = 0; i < num_outputs; ++i) outputs[i] = allocate(ts_model_output_bytes(model, i));

  if (ts_model_run(model, inputs, outputs) != TS_OK) fail("run", ts_last_error()); /* warms up */
  start = seconds_now();
  do {
    const double before = seconds_now();
    if (ts_model_run(model, inputs, outputs) != TS_OK) fail("run", ts_last_error());
    times[runs++] = seconds_now() - before;
  } while (runs < MAX_RUNS && seconds_now() - start < limit);
  qsort(times, (size_t)runs, sizeof times[0], by_value);
  printf("%s: %.3f ms (median of %d runs, %d threads)\n", ts_model_name(model), 1e3 * times[runs / 2], runs,
         ts_model_num_threads(model));
  for (i = 0; i < num_outputs; ++i) {
    const size_t count = ts_model_output_bytes(model, i) / sizeof(float);
    if (ts_model_output_dtype(model, i) != TS_F32) continue;
    printf("%s:", ts_model_output_name(model, i));
    for (k = 0; k < count && k < 10; ++k) printf(" %g", (double)((const float*)outputs[i])[k]);
    printf("\n");
  }
  ts_model_free(model);
  return 0;
}
