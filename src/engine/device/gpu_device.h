// Describes the GPUs of this machine, and any other device that its OpenCL drivers offer, as
// devices named "cuda", "cuda:1", "opencl", "opencl:0".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/device/gpu.h"
#include "runtime/device/gpu_platform.h"
#include "target/target.h"

namespace tensorsmith::engine {

using runtime::GpuPlace;
using runtime::parse_gpu_place;

// Place of a device that find_device() made; nothing for other devices.
std::optional<GpuPlace> gpu_place(const target::Device& device);

// Returns the device with these properties. An NVIDIA board whose figures identify it gets its
// device file's attributes, so that measurements under its name apply to it. For other boards, the
// file of a board of the same architecture supplies what drivers do not report: lanes, L1 size,
// launch cost.
target::Device gpu_device(const runtime::GpuProperties& properties);

// Like target::find_device, but also finds the GPUs of this machine. All tools map --device to a
// device by this function.
Result<target::Device> find_device(std::string_view spec);

// Returns the device with its measured launch cost and, if the driver does not report it, its
// measured memory bandwidth; unchanged if it cannot be opened. Takes a second. The device must have
// a gpu_place().
target::Device with_gpu_measurements(target::Device device);

// The GPUs of this machine. For each interface without a GPU, `missing` has a line that says why.
struct FoundGpus {
  std::vector<target::Device> devices;
  std::vector<std::string> missing;
};
FoundGpus find_gpus();

}  // namespace tensorsmith::engine
