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
  for (const double figure :
       {static_cast<double>(device.vector_bytes), device.fma_per_cycle, static_cast<double>(device.l1_bytes),
        static_cast<double>(device.cacheline_bytes), static_cast<double>(device.warp_size),
        static_cast<double>(device.max_threads_per_core), static_cast<double>(device.shared_memory_per_core),
        static_cast<double>(device.registers_per_core)})
    out.values.push_back(std::log2(figure + 1));
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
