// Loading and running compiled models.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/device/gpu_place.h"
#include "runtime/model_format.h"

namespace tensorsmith::runtime {

struct LoadOptions {
  int threads = 0;       // including the caller of run(); 0 = Processors::usable of this process
  bool profile = false;  // time every call
  // With profile: so many times each call runs again at once, for CallTime::min_seconds_alone. A run of the
  // model takes as much longer.
  int repeats_alone = 0;
  // Where a model for a GPU runs; nothing = the first device of the interface that it was compiled for. kUnsupported:
  // the model was compiled for another interface, or for processors.
  std::optional<GpuPlace> gpu = std::nullopt;
  // Compare weights.bin with its hash (reads it all once). kernels.so is always compared.
  bool verify_weights = true;
};

// Accumulated times of one call of the description, since loading or reset_profile().
struct CallTime {
  int64_t runs = 0;
  double total_seconds = 0;
  double min_seconds = 0;  // of one run; 0 before the first
  // The same of LoadOptions::repeats_alone: what the call takes with its data in the caches, as tuning
  // measures it. 0 without them.
  double min_seconds_alone = 0;
};

class Model {
 public:
  // Checks everything: files complete, format version, hashes, CPU features, symbols, and that each call
  // gives its kernel the buffers and workspaces that the library says it needs. Errors name the file and the
  // part.
  static Result<std::unique_ptr<Model>> load(const std::string& directory, const LoadOptions& options = {});
  // A model without files, as compilation makes it. kernels: by call; weights: by number, at addresses divisible by
  // kBufferAlignment. Both outlive the model. What the description says of places of weights is ignored.
  static Result<std::unique_ptr<Model>> from_memory(ModelDescription description,
                                                    std::span<const TensorsmithKernel> kernels,
                                                    std::span<const WeightData> weights,
                                                    const LoadOptions& options);
  // The same of a model for a GPU. modules: what kernels.gpu holds; they and the weights may go afterwards.
  static Result<std::unique_ptr<Model>> from_modules(ModelDescription description,
                                                     std::span<const char> modules,
                                                     std::span<const WeightData> weights,
                                                     const LoadOptions& options);
  ~Model();

  const ModelDescription& description() const;
  std::span<const TensorInfo> inputs() const;
  std::span<const TensorInfo> outputs() const;
  int num_threads() const;  // of this machine; 1 where a GPU computes

  // Runs the model once. inputs[i] holds inputs()[i].bytes() bytes, row-major, and is only read; outputs[i]
  // is written completely and must overlap no other tensor. Allocates nothing; pointers that are not 64-byte
  // aligned cost a copy. Calls from several threads run one after the other.
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs);

  // Of a model for a GPU: the tensor is in the device's memory from now on, where run() reads or writes it without a copy
  // and does not look at its pointer. handle: an address of the device (CUdeviceptr) or a buffer (cl_mem) of
  // device_context(), of at least the tensor's bytes, that the caller keeps until it is bound anew (null: copied again) or
  // the model is gone. What others do with the memory is over before run() is called, and run() returns when it is done.
  // The next run prepares the launches anew (milliseconds). kUnsupported: the model runs on processors;
  // kInvalidArgument: no such tensor, or memory that does not suit.
  Status bind_input(size_t index, void* handle);
  Status bind_output(size_t index, void* handle);
  // CUcontext (the device's primary context) or cl_context; null on processors.
  void* device_context() const;

  // Of the last run() of a model for a GPU: from its first launch to the end of its last, without the copies of inputs and
  // outputs; with LoadOptions::profile the sum over the calls. 0 on processors.
  double device_seconds() const;

  // By call of the description; empty unless loaded with profile.
  std::vector<CallTime> profile() const;
  void reset_profile();

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorsmith::runtime
