// Similarity of devices: how far a correction learned on one device applies to a device without
// measurements.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "target/target.h"

namespace tensorsmith::learn {

// Attributes of one core or multiprocessor, regardless of how many the device has: the architecture
// that code is compiled for, and base-2 logarithms of vector lanes, register file, occupancy limits
// and cache sizes.
struct DeviceTraits {
  std::string arch;
  std::vector<double> values;
};
DeviceTraits traits_of(const target::Device& device);

// Returns the weights of the known devices for predicting an unknown one. They are not negative and
// sum to 1 (empty if no device is known). A weight falls exponentially with the distance between
// the traits. A device of another architecture has another compiler, and code generation (above all
// spills) causes most of the error of a physical estimate, so its weight is divided by 20.
std::vector<double> similarity_weights(const DeviceTraits& unknown, std::span<const DeviceTraits> known);

}  // namespace tensorsmith::learn
