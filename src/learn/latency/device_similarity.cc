#include "learn/latency/device_similarity.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::learn {

namespace {

constexpr double kOtherArchitecture = 0.05;
constexpr double kDistance = 4;  // in doublings; at this distance a weight has fallen to 1 / e

}  // namespace

DeviceTraits traits_of(const target::Device& device) {
  DeviceTraits out{device.arch, {}};
  const auto add = [&](double figure) { out.values.push_back(std::log2(figure + 1)); };
  const target::GpuFigures& gpu = target::gpu_or_no_limits(device);
  add(device.register_bytes());
  add(device.fma_per_cycle());
  add(device.l1_bytes);
  add(device.cacheline_bytes);
  add(gpu.warp_size);
  add(gpu.max_threads_per_core);
  add(gpu.shared_memory_per_core);
  add(gpu.registers_per_core);
  return out;
}

std::vector<double> similarity_weights(const DeviceTraits& unknown, std::span<const DeviceTraits> known) {
  std::vector<double> out;
  double sum = 0;
  for (const DeviceTraits& device : known) {
    double distance = 0;
    for (size_t i = 0; i < std::min(device.values.size(), unknown.values.size()); ++i)
      distance += std::abs(device.values[i] - unknown.values[i]);
    out.push_back(std::exp(-distance / kDistance) * (device.arch == unknown.arch ? 1 : kOtherArchitecture));
    sum += out.back();
  }
  for (double& weight : out) weight /= sum;
  return out;
}

}  // namespace tensorsmith::learn
