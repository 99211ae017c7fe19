/* A user's program in plain C: loads the model named on the command line, runs it, checks the errors of the
 * interface. Returns 0 if everything is as documented. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorsmith.h"

#define EXPECT(condition)                                                                       \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      fprintf(stderr, "line %d: %s (last error: %s)\n", __LINE__, #condition, ts_last_error()); \
      return 1;                                                                                 \
    }                                                                                           \
  } while (0)

int main(int argc, char** argv) {
  ts_model* model = (ts_model*)1;
  float x[32], y[64], y_sum = 0;
  int32_t count = -1;
  int i;
  const void* inputs[1];
  void* outputs[2];
  EXPECT(argc == 2);
  EXPECT(strlen(ts_version()) > 0);
  EXPECT(strcmp(ts_last_error(), "") == 0);

  EXPECT(ts_model_load("/nonexistent", 1, &model) == TS_NOT_FOUND);
  EXPECT(model == NULL);
  EXPECT(strstr(ts_last_error(), "/nonexistent") != NULL);
  EXPECT(ts_model_load(NULL, 1, &model) == TS_INVALID_ARGUMENT);
  EXPECT(ts_model_load(argv[1], 1, NULL) == TS_INVALID_ARGUMENT);
  EXPECT(ts_model_load(argv[1], -3, &model) == TS_INVALID_ARGUMENT);

  /* The model is compiled for CPUs. */
  model = (ts_model*)1;
  EXPECT(ts_model_load_on(argv[1], "cuda:1", &model) == TS_UNSUPPORTED);
  EXPECT(model == NULL);
  EXPECT(strstr(ts_last_error(), "cuda:1") != NULL && strstr(ts_last_error(), "for CPUs") != NULL);
  EXPECT(ts_model_load_on(argv[1], "opencl:one", &model) == TS_INVALID_ARGUMENT);
  EXPECT(ts_model_load_on(argv[1], "local", &model) == TS_INVALID_ARGUMENT);
  EXPECT(strstr(ts_last_error(), "'local'") != NULL);
  EXPECT(ts_model_load_on(argv[1], NULL, &model) == TS_INVALID_ARGUMENT);
  EXPECT(ts_model_load_on(NULL, "cuda", &model) == TS_INVALID_ARGUMENT);
  EXPECT(ts_model_load_on(argv[1], "cuda", NULL) == TS_INVALID_ARGUMENT);

  EXPECT(ts_model_load(argv[1], 2, &model) == TS_OK);
  EXPECT(strcmp(ts_model_name(model), "tiny") == 0);
  EXPECT(ts_model_num_threads(model) == 2);
  EXPECT(ts_model_device_context(model) == NULL && ts_model_device_context(NULL) == NULL);
  EXPECT(ts_model_bind_input(model, 0, x) == TS_UNSUPPORTED);
  EXPECT(strstr(ts_last_error(), "only models on GPUs can bind memory") != NULL);
  EXPECT(ts_model_bind_output(model, 0, y) == TS_UNSUPPORTED);
  EXPECT(ts_model_bind_input(NULL, 0, x) == TS_INVALID_ARGUMENT);
  EXPECT(ts_model_bind_output(NULL, 0, y) == TS_INVALID_ARGUMENT);
  EXPECT(ts_model_num_inputs(model) == 1);
  EXPECT(ts_model_num_outputs(model) == 2);
  EXPECT(strcmp(ts_model_input_name(model, 0), "x") == 0);
  EXPECT(ts_model_input_dtype(model, 0) == TS_F32);
  EXPECT(ts_model_input_rank(model, 0) == 2);
  EXPECT(ts_model_input_dims(model, 0)[0] == 4 && ts_model_input_dims(model, 0)[1] == 8);
  EXPECT(ts_model_input_bytes(model, 0) == sizeof x);
  EXPECT(strcmp(ts_model_output_name(model, 1), "count") == 0);
  EXPECT(ts_model_output_dtype(model, 1) == TS_I32);
  EXPECT(ts_model_output_rank(model, 1) == 0);
  EXPECT(ts_model_output_dims(model, 1) == NULL);
  EXPECT(ts_model_output_bytes(model, 0) == sizeof y);
  EXPECT(ts_model_input_name(model, 1) == NULL);
  EXPECT(strcmp(ts_last_error(), "input index is out of range") == 0);
  EXPECT(ts_model_output_rank(model, 2) == -1);
  EXPECT(ts_model_num_inputs(NULL) == 0);

  for (i = 0; i < 32; ++i) x[i] = 0;
  inputs[0] = x;
  outputs[0] = y;
  outputs[1] = &count;
  EXPECT(ts_model_run(NULL, inputs, outputs) == TS_INVALID_ARGUMENT);
  EXPECT(ts_model_run(model, NULL, outputs) == TS_INVALID_ARGUMENT);
  inputs[0] = NULL;
  EXPECT(ts_model_run(model, inputs, outputs) == TS_INVALID_ARGUMENT);
  EXPECT(strstr(ts_last_error(), "input 'x'") != NULL);
  inputs[0] = x;
  EXPECT(ts_model_run(model, inputs, outputs) == TS_OK);
  /* With x = 0 each row is max(b, 0), so all rows are equal. */
  for (i = 0; i < 64; ++i) {
    EXPECT(y[i] == y[i % 16]);
    EXPECT(y[i] >= 0);
    y_sum += y[i];
  }
  EXPECT(y_sum > 0);
  EXPECT(count > 0 && count % 4 == 0);
  ts_model_free(model);
  ts_model_free(NULL);
  return 0;
}
