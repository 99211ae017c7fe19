// Loading and running compiled models.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/device/gpu_platform.h"
#include "runtime/model_format.h"

namespace tensorsmith::runtime {

struct LoadOptions {
  int threads = 0;       // including the caller of run(); 0 = this process' Processors::usable
  bool profile = false;  // time every call
  // With `profile`: number of times that each call is repeated, for CallTime::min_seconds_alone. A
  // run of the model takes longer accordingly.
  int repeats_alone = 0;
  // The GPU that runs the model; nothing = the first device of the interface that the model was
  // compiled for. Loading returns kUnsupported if the model was compiled for another interface, or
  // for processors.
  std::optional<GpuPlace> gpu = std::nullopt;
  // Most turns of a loop whose number of turns is only known when it ends.
  int64_t max_turns = int64_t{1} << 31;
  // Checks the hash of weights.bin (reads the whole file once). kernels.so is always checked.
  bool verify_weights = true;
};

// Accumulated times of one call of the description, since loading or reset_profile().
struct CallTime {
  int64_t runs = 0;  // a call in a loop runs once a turn
  double total_seconds = 0;
  double min_seconds = 0;  // shortest run; 0 before the first
  // Shortest of the repetitions by LoadOptions::repeats_alone: the time of the call with its data
  // in the caches, as tuning measures it. 0 without repetitions.
  double min_seconds_alone = 0;
};

class Model {
 public:
  // Loads a model and checks that the files are complete, their format version, hashes, CPU
  // features and symbols, and that each call gives its kernel the buffers and workspaces that the
  // library demands. Errors name the file and the part.
  static Result<std::unique_ptr<Model>> load(const std::string& directory, const LoadOptions& options = {});
  // Makes a model without files, directly from the compiler. `kernels` are by call (null for a routine), `weights` by
  // number, at addresses that are divisible by kBufferAlignment; both must outlive the model. The
  // description's places of weights are ignored.
  static Result<std::unique_ptr<Model>> from_memory(ModelDescription description,
                                                    std::span<const TensorsmithKernel> kernels,
                                                    std::span<const WeightData> weights,
                                                    const LoadOptions& options);
  // Makes a model for a GPU without files. `modules` has the content of kernels.gpu; neither it nor
  // the weights are needed afterwards.
  static Result<std::unique_ptr<Model>> from_modules(ModelDescription description,
                                                     std::span<const char> modules,
                                                     std::span<const WeightData> weights,
                                                     const LoadOptions& options);
  ~Model();

  const ModelDescription& description() const;
  std::span<const TensorInfo> inputs() const;
  std::span<const TensorInfo> outputs() const;
  int num_threads() const;  // threads on this machine; 1 if a GPU computes

  // Runs the model once. inputs[i] holds inputs()[i].bytes() bytes, row-major, and is only read; outputs[i]
  // is written completely and must overlap no other tensor. Allocates nothing; pointers that are not 64-byte
  // aligned cost a copy. Calls from several threads run one after the other.
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs);

  // Binds an input or output of a model for a GPU to memory of the device. From then on, run()
  // reads or writes the tensor there without a copy and ignores its pointer. `handle` is an address
  // of the device (CUdeviceptr) or a buffer (cl_mem) of device_context(), with at least the
  // tensor's bytes. The caller keeps it until the tensor is bound again (null: the tensor is copied
  // again) or the model is destroyed. Other work on the memory must be complete before run() is
  // called; run() returns when its own work is complete. The next run prepares the launches again
  // (milliseconds). Errors: kUnsupported if the model runs on processors; kInvalidArgument for an
  // unknown tensor or unsuitable memory.
  Status bind_input(size_t index, void* handle);
  Status bind_output(size_t index, void* handle);
  // Returns the CUcontext (the device's primary context) or cl_context; null on processors.
  void* device_context() const;

  // Duration of the last run() of a model for a GPU, from its first launch to the end of its last,
  // without the copies of inputs and outputs; with LoadOptions::profile, the sum over the calls. 0
  // on processors.
  double device_seconds() const;

  // Times by call of the description; empty unless loaded with `profile`.
  std::vector<CallTime> profile() const;
  void reset_profile();

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorsmith::runtime
