/* Running models compiled by Tensorsmith. C99; needs libtensorsmith_runtime only.
 *
 *   ts_model* model;
 *   if (ts_model_load("tuned", 0, &model) != TS_OK) { fputs(ts_last_error(), stderr); exit(1); }
 *   const void* inputs[] = {image};
 *   void* outputs[] = {scores};
 *   if (ts_model_run(model, inputs, outputs) != TS_OK) ...
 *   ts_model_free(model);
 *
 * Tensors are dense and row-major. A pointer aligned to 64 bytes is used as it is; others cost a copy. */
#ifndef TENSORSMITH_RUNTIME_TENSORSMITH_H_
#define TENSORSMITH_RUNTIME_TENSORSMITH_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TS_API __attribute__((visibility("default")))
#else
#define TS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ts_model ts_model;

typedef enum ts_status {
  TS_OK = 0,
  TS_INVALID_ARGUMENT = 1, /* a null pointer, an index out of range */
  TS_NOT_FOUND = 2,        /* no such directory or file */
  TS_UNSUPPORTED = 3,      /* compiled for another CPU, or for another interface of GPUs */
  TS_CORRUPT = 4,          /* damaged, incomplete, or of another format version */
  TS_IO_ERROR = 5,         /* the operating system refused */
  TS_OUT_OF_RESOURCES = 6,
  TS_INTERNAL = 7 /* a bug in Tensorsmith */
} ts_status;

/* Element types. TS_BOOL is one byte, 0 or 1; TS_F16 is IEEE half, TS_BF16 the upper half of an IEEE single.
 */
typedef enum ts_dtype {
  TS_BOOL = 0,
  TS_I8 = 1,
  TS_U8 = 2,
  TS_I16 = 3,
  TS_U16 = 4,
  TS_I32 = 5,
  TS_U32 = 6,
  TS_I64 = 7,
  TS_U64 = 8,
  TS_F16 = 9,
  TS_BF16 = 10,
  TS_F32 = 11,
  TS_F64 = 12
} ts_dtype;

/* The version of this library: "MAJOR.MINOR.PATCH". */
TS_API const char* ts_version(void);

/* Why the last call of this thread failed: one line naming the place; "" if none failed. Valid until the next
 * call of a function of this library by this thread. */
TS_API const char* ts_last_error(void);

/* Loads the compiled model in `directory` and checks that no part of it is damaged. Its kernels are machine
 * code: load only models that you would run as a program. num_threads is the number of threads that
 * ts_model_run uses, including its caller; 0 = one per core that this process may use, or fewer if a cgroup
 * limits its CPU time. On success, *model must be freed with ts_model_free; on failure, it is set to NULL. */
TS_API ts_status ts_model_load(const char* directory, int num_threads, ts_model** model);

/* Loads a model that was compiled for GPUs and runs it on the one that `device` names: "cuda:1", "opencl:0".
 * Without a number, that is the first device, which ts_model_load uses, too. Returns TS_UNSUPPORTED if the
 * model was compiled for the other interface or for CPUs, and TS_NOT_FOUND if there is no such device. */
TS_API ts_status ts_model_load_on(const char* directory, const char* device, ts_model** model);

/* Frees the model and its threads; NULL is allowed. No run may be in progress. */
TS_API void ts_model_free(ts_model* model);

TS_API const char* ts_model_name(const ts_model* model);
TS_API int ts_model_num_threads(const ts_model* model);

/* Inputs and outputs are numbered from 0, in the order of the original model. Returned pointers are valid as
 * long as the model. If an index is out of range or the model is NULL, these functions return NULL, -1, 0 or
 * TS_F32, and ts_last_error gives the reason. dims has rank elements (NULL for a scalar). */
TS_API size_t ts_model_num_inputs(const ts_model* model);
TS_API const char* ts_model_input_name(const ts_model* model, size_t index);
TS_API ts_dtype ts_model_input_dtype(const ts_model* model, size_t index);
TS_API int ts_model_input_rank(const ts_model* model, size_t index);
TS_API const int64_t* ts_model_input_dims(const ts_model* model, size_t index);
TS_API size_t ts_model_input_bytes(const ts_model* model, size_t index);

TS_API size_t ts_model_num_outputs(const ts_model* model);
TS_API const char* ts_model_output_name(const ts_model* model, size_t index);
TS_API ts_dtype ts_model_output_dtype(const ts_model* model, size_t index);
TS_API int ts_model_output_rank(const ts_model* model, size_t index);
TS_API const int64_t* ts_model_output_dims(const ts_model* model, size_t index);
TS_API size_t ts_model_output_bytes(const ts_model* model, size_t index);

/* Runs the model once: reads the inputs, writes the outputs completely. Outputs must overlap no other tensor.
 * Allocates nothing. Thread-safe: runs of one model by several threads happen one after the other; load the
 * model once for each thread to run in parallel. */
TS_API ts_status ts_model_run(ts_model* model, const void* const* inputs, void* const* outputs);

/* Bind an input or output to memory of the GPU. A bound tensor is read or written there without a copy, and its
 * pointer in ts_model_run may be NULL. `memory` is an address of the device (a CUdeviceptr, cast; a multiple of
 * 64) or a cl_mem of ts_model_device_context, with at least the tensor's bytes. The caller keeps it until the
 * tensor is bound again or the model is freed; NULL: the tensor is copied again, as before it was bound. Other
 * work on the memory must be complete before ts_model_run, which returns when its own work is complete. The run
 * after a bind prepares the launches again (milliseconds): bind once, run often. TS_UNSUPPORTED: the model was
 * compiled for CPUs. */
TS_API ts_status ts_model_bind_input(ts_model* model, size_t index, void* memory);
TS_API ts_status ts_model_bind_output(ts_model* model, size_t index, void* memory);
/* The CUcontext (the device's primary context) or cl_context of the model, as long as it lives; NULL on CPUs. */
TS_API void* ts_model_device_context(const ts_model* model);

#ifdef __cplusplus
}
#endif
#endif
