#include <exception>
#include <memory>
#include <new>
#include <string>

#include "runtime/model.h"
#include "runtime/tensorsmith.h"

using tensorsmith::DType;
using tensorsmith::Error;
using tensorsmith::ErrorCode;
using tensorsmith::Status;
using tensorsmith::runtime::LoadOptions;
using tensorsmith::runtime::Model;
using tensorsmith::runtime::require_gpu_place;
using tensorsmith::runtime::TensorInfo;

struct ts_model {
  std::unique_ptr<Model> model;
};

namespace {

static_assert(static_cast<int>(DType::kBool) == TS_BOOL && static_cast<int>(DType::kI64) == TS_I64 &&
                  static_cast<int>(DType::kF16) == TS_F16 && static_cast<int>(DType::kBF16) == TS_BF16 &&
                  static_cast<int>(DType::kF32) == TS_F32 && static_cast<int>(DType::kF64) == TS_F64 &&
                  tensorsmith::kDTypes.size() == TS_F64 + 1,
              "ts_dtype mirrors DType");

// The error state of the C interface; its contract is one per thread.
thread_local std::string last_error;

ts_status fail(ts_status status, const char* message) {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();  // out of memory: the status alone must do
  }
  return status;
}

ts_status to_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kIllegal:
      return TS_INVALID_ARGUMENT;
    case ErrorCode::kNotFound:
      return TS_NOT_FOUND;
    case ErrorCode::kUnsupported:
      return TS_UNSUPPORTED;
    case ErrorCode::kCorrupt:
    case ErrorCode::kMismatch:
      return TS_CORRUPT;
    case ErrorCode::kIo:
      return TS_IO_ERROR;
    case ErrorCode::kTimeout:
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kCancelled:
      return TS_OUT_OF_RESOURCES;
  }
  return TS_INTERNAL;
}

ts_status fail(const Error& error) { return fail(to_status(error.code), error.message().c_str()); }
ts_status status_of(const Status& status) { return status.ok() ? TS_OK : fail(status.error()); }

// Exceptions must not propagate into C.
template <class Fn>
ts_status guarded(const Fn& fn) {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return fail(TS_OUT_OF_RESOURCES, "out of memory");
  } catch (const std::exception& e) {
    return fail(TS_INTERNAL, e.what());
  } catch (...) {
    return fail(TS_INTERNAL, "unknown exception");
  }
}

// `set_options` fills in the LoadOptions that the caller asked for.
template <class Fn>
ts_status load(const char* directory, ts_model** model, const Fn& set_options) {
  if (!model) return fail(TS_INVALID_ARGUMENT, "the place for the model is a null pointer");
  *model = nullptr;
  if (!directory) return fail(TS_INVALID_ARGUMENT, "the directory is a null pointer");
  return guarded([&]() -> ts_status {
    LoadOptions options;
    if (const Status set = set_options(options); !set.ok()) return fail(set.error());
    auto loaded = Model::load(directory, options);
    if (!loaded.ok()) return fail(loaded.error());
    auto owner = std::make_unique<ts_model>();
    owner->model = std::move(loaded).value();
    *model = owner.release();
    return TS_OK;
  });
}

enum class Side { kInput, kOutput };

const TensorInfo* tensor(const ts_model* model, Side side, size_t index) {
  if (!model) {
    fail(TS_INVALID_ARGUMENT, "the model is a null pointer");
    return nullptr;
  }
  const auto tensors = side == Side::kInput ? model->model->inputs() : model->model->outputs();
  if (index < tensors.size()) return &tensors[index];
  fail(TS_INVALID_ARGUMENT,
       side == Side::kInput ? "input index is out of range" : "output index is out of range");
  return nullptr;
}

const char* name_of(const TensorInfo* t) { return t ? t->name.c_str() : nullptr; }
ts_dtype dtype_of(const TensorInfo* t) { return t ? static_cast<ts_dtype>(t->dtype) : TS_F32; }
int rank_of(const TensorInfo* t) { return t ? static_cast<int>(t->shape.size()) : -1; }
const int64_t* dims_of(const TensorInfo* t) { return t && !t->shape.empty() ? t->shape.data() : nullptr; }
size_t bytes_of(const TensorInfo* t) { return t ? t->bytes() : 0; }

}  // namespace

extern "C" {

const char* ts_version(void) { return TENSORSMITH_VERSION; }

const char* ts_last_error(void) { return last_error.c_str(); }

ts_status ts_model_load(const char* directory, int num_threads, ts_model** model) {
  return load(directory, model, [&](LoadOptions& options) -> Status {
    options.threads = num_threads;
    return {};
  });
}

ts_status ts_model_load_on(const char* directory, const char* device, ts_model** model) {
  return load(directory, model, [&](LoadOptions& options) -> Status {
    if (!device) return Error{ErrorCode::kInvalidArgument, "", "the device is a null pointer"};
    TS_ASSIGN_OR_RETURN(options.gpu, require_gpu_place(device));
    return {};
  });
}

void ts_model_free(ts_model* model) { delete model; }

const char* ts_model_name(const ts_model* model) {
  return model ? model->model->description().name.c_str() : nullptr;
}
int ts_model_num_threads(const ts_model* model) { return model ? model->model->num_threads() : -1; }

size_t ts_model_num_inputs(const ts_model* model) { return model ? model->model->inputs().size() : 0; }
const char* ts_model_input_name(const ts_model* m, size_t i) { return name_of(tensor(m, Side::kInput, i)); }
ts_dtype ts_model_input_dtype(const ts_model* m, size_t i) { return dtype_of(tensor(m, Side::kInput, i)); }
int ts_model_input_rank(const ts_model* m, size_t i) { return rank_of(tensor(m, Side::kInput, i)); }
const int64_t* ts_model_input_dims(const ts_model* m, size_t i) {
  return dims_of(tensor(m, Side::kInput, i));
}
size_t ts_model_input_bytes(const ts_model* m, size_t i) { return bytes_of(tensor(m, Side::kInput, i)); }

size_t ts_model_num_outputs(const ts_model* model) { return model ? model->model->outputs().size() : 0; }
const char* ts_model_output_name(const ts_model* m, size_t i) { return name_of(tensor(m, Side::kOutput, i)); }
ts_dtype ts_model_output_dtype(const ts_model* m, size_t i) { return dtype_of(tensor(m, Side::kOutput, i)); }
int ts_model_output_rank(const ts_model* m, size_t i) { return rank_of(tensor(m, Side::kOutput, i)); }
const int64_t* ts_model_output_dims(const ts_model* m, size_t i) {
  return dims_of(tensor(m, Side::kOutput, i));
}
size_t ts_model_output_bytes(const ts_model* m, size_t i) { return bytes_of(tensor(m, Side::kOutput, i)); }

ts_status ts_model_run(ts_model* model, const void* const* inputs, void* const* outputs) {
  if (!model) return fail(TS_INVALID_ARGUMENT, "the model is a null pointer");
  Model& m = *model->model;
  if ((!inputs && !m.inputs().empty()) || (!outputs && !m.outputs().empty()))
    return fail(TS_INVALID_ARGUMENT, "the list of inputs or outputs is a null pointer");
  return guarded([&]() -> ts_status {
    return status_of(m.run({inputs, m.inputs().size()}, {outputs, m.outputs().size()}));
  });
}

ts_status ts_model_bind_input(ts_model* model, size_t index, void* memory) {
  if (!model) return fail(TS_INVALID_ARGUMENT, "the model is a null pointer");
  return guarded([&] { return status_of(model->model->bind_input(index, memory)); });
}

ts_status ts_model_bind_output(ts_model* model, size_t index, void* memory) {
  if (!model) return fail(TS_INVALID_ARGUMENT, "the model is a null pointer");
  return guarded([&] { return status_of(model->model->bind_output(index, memory)); });
}

void* ts_model_device_context(const ts_model* model) {
  return model ? model->model->device_context() : nullptr;
}

}  // extern "C"
