// A compiled model on a GPU: its weights and values are in the device's memory, and its calls form
// a sequence of launches.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/device/gpu.h"
#include "runtime/model_format.h"

namespace tensorsmith::runtime {

class GpuModel {
 public:
  // `kernels` is the content of the file of modules; `weights` are indexed by their numbers. The
  // description must outlive the model. Errors: those of the device's memory, and rejected modules,
  // with the call as the place.
  static Result<std::unique_ptr<GpuModel>> create(std::unique_ptr<Gpu> gpu,
                                                  const ModelDescription& description,
                                                  std::span<const char> kernels,
                                                  std::span<const std::byte* const> weights);

  // Replaces the tensor that run() copies by one in the device's memory (Gpu::borrow); null: run()
  // copies it again. The next run makes the launches again.
  Status bind_input(size_t index, void* handle) {
    return bind(inputs_[index], description_.inputs[index], handle);
  }
  Status bind_output(size_t index, void* handle) {
    return bind(outputs_[index], description_.outputs[index], handle);
  }
  bool input_bound(size_t index) const { return inputs_[index].borrowed; }
  bool output_bound(size_t index) const { return outputs_[index].borrowed; }
  void* context() const { return gpu_->context(); }

  // Runs the model with inputs and outputs in this process' memory, as Model::run does. Pointers of
  // bound tensors are ignored. device_seconds is the time from the beginning of the first launch to
  // the end of the last.
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs, double& device_seconds);
  // Runs the model and also returns the seconds that each call took on the device.
  Status run_timed(std::span<const void* const> inputs, std::span<void* const> outputs,
                   std::vector<double>& seconds);

 private:
  GpuModel(std::unique_ptr<Gpu> gpu, const ModelDescription& description)
      : gpu_(std::move(gpu)), description_(description) {}
  Status place(std::span<const std::byte* const> weights);
  Status load(std::span<const char> kernels);
  Status make_sequences();
  Status prepare() { return all_ ? Status{} : make_sequences(); }
  Result<GpuSpan> span_of(const BufferRef& buffer) const;
  Status copy_in(std::span<const void* const> inputs);
  Status copy_out(std::span<void* const> outputs);

  std::unique_ptr<Gpu> gpu_;
  const ModelDescription& description_;
  // Members are destroyed in the order of their dependencies, before the device.
  std::unique_ptr<GpuMemory> arena_, weights_, workspace_;
  std::vector<int64_t> weight_offset_;  // offsets in weights_
  // Memory of an input or output: own memory that values are copied through, or memory borrowed
  // from the caller.
  struct Tensor {
    std::unique_ptr<GpuMemory> memory;
    bool borrowed = false;
  };
  Status bind(Tensor& tensor, const TensorInfo& info, void* handle);

  std::vector<Tensor> inputs_, outputs_;
  std::vector<std::unique_ptr<GpuModule>> modules_;
  std::vector<const GpuModule*> module_of_;  // by call; null if the call launches nothing
  std::unique_ptr<GpuSequence> all_;
  std::vector<std::unique_ptr<GpuSequence>> calls_;
};

}  // namespace tensorsmith::runtime
