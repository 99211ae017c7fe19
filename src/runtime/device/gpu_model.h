// A compiled model on a GPU: its weights and values in the device's memory, its calls as one sequence of launches.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/device/gpu.h"
#include "runtime/model_format.h"

namespace tensorsmith::runtime {

class GpuModel {
 public:
  // kernels: the file of modules; weights: by number. The description outlives the model. Errors of the device's memory
  // and of modules that it refuses, with the call in place.
  static Result<std::unique_ptr<GpuModel>> create(std::unique_ptr<Gpu> gpu,
                                                  const ModelDescription& description,
                                                  std::span<const char> kernels,
                                                  std::span<const std::byte* const> weights);

  // The device's own tensor takes the place of the one that run() copies (Gpu::borrow); null: copied again. The launches
  // are made again at the next run.
  Status bind_input(size_t index, void* handle) {
    return bind(inputs_[index], description_.inputs[index], handle);
  }
  Status bind_output(size_t index, void* handle) {
    return bind(outputs_[index], description_.outputs[index], handle);
  }
  bool input_bound(size_t index) const { return inputs_[index].borrowed; }
  bool output_bound(size_t index) const { return outputs_[index].borrowed; }
  void* context() const { return gpu_->context(); }

  // Inputs and outputs as of Model::run: in this process' memory. Those that are bound are not looked at.
  // device_seconds: from the beginning of the first launch to the end of the last.
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs, double& device_seconds);
  // The same, and for each call the seconds that it took on the device.
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
  // Released before the device, in the order of what needs what.
  std::unique_ptr<GpuMemory> arena_, weights_, workspace_;
  std::vector<int64_t> weight_offset_;  // in weights_
  // A tensor of the caller: own memory that values are copied through, or borrowed.
  struct Tensor {
    std::unique_ptr<GpuMemory> memory;
    bool borrowed = false;
  };
  Status bind(Tensor& tensor, const TensorInfo& info, void* handle);

  std::vector<Tensor> inputs_, outputs_;
  std::vector<std::unique_ptr<GpuModule>> modules_;
  std::vector<const GpuModule*> module_of_;  // by call; null where it launches nothing
  std::unique_ptr<GpuSequence> all_;
  std::vector<std::unique_ptr<GpuSequence>> calls_;
};

}  // namespace tensorsmith::runtime
