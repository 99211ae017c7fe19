// GPUs of this machine (and whatever else its OpenCL drivers show) as devices: "cuda", "cuda:1", "opencl", "opencl:0".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/device/gpu.h"
#include "runtime/device/gpu_place.h"
#include "target/target.h"

namespace tensorsmith::engine {

using runtime::GpuPlace;
using runtime::parse_gpu_place;

// Of a device that find_device() made.
std::optional<GpuPlace> gpu_place(const target::Device& device);

// The device with these properties. An NVIDIA board that is known by its figures has those of its file, so that what was
// measured under its name counts for it; of others, the file of a board of the same architecture says what no driver
// tells: lanes, the first cache, the cost of a launch.
target::Device gpu_device(const runtime::GpuProperties& properties);

// target::find_device, and GPUs of this machine. The tools' one way from --device to a device.
Result<target::Device> find_device(std::string_view spec);

// The device as measured: the cost of a launch, and its memory bandwidth where the driver does not say it. As it was
// where it cannot be opened. Takes a second. device: one that has a gpu_place().
target::Device with_gpu_measurements(target::Device device);

// The GPUs of this machine, and for each interface without one a line that says why.
struct FoundGpus {
  std::vector<target::Device> devices;
  std::vector<std::string> missing;
};
FoundGpus find_gpus();

}  // namespace tensorsmith::engine
