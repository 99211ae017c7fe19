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

  // Inputs and outputs as of Model::run: in this process' memory.
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
  Result<GpuSpan> span_of(const BufferRef& buffer) const;
  Status copy_in(std::span<const void* const> inputs);
  Status copy_out(std::span<void* const> outputs);

  std::unique_ptr<Gpu> gpu_;
  const ModelDescription& description_;
  // Released before the device, in the order of what needs what.
  std::unique_ptr<GpuMemory> arena_, weights_, workspace_;
  std::vector<int64_t> weight_offset_;  // in weights_
  std::vector<std::unique_ptr<GpuMemory>> inputs_, outputs_;
  std::vector<std::unique_ptr<GpuModule>> modules_;
  std::unique_ptr<GpuSequence> all_;
  std::vector<std::unique_ptr<GpuSequence>> calls_;
};

}  // namespace tensorsmith::runtime
