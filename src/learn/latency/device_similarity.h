// How much of what a model has learned of one device holds on another one that nobody has measured.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "target/target.h"

namespace tensorsmith::learn {

// What a core or multiprocessor is like, whatever their number: the architecture that code is compiled for, and logarithms to base 2
// of lanes, register file, occupancy limits and caches.
struct DeviceTraits {
  std::string arch;
  std::vector<double> values;
};
DeviceTraits traits_of(const target::Device& device);

// Weights of the known devices for one that is not known; not negative, their sum is 1 (empty without any known). They fall
// exponentially with the distance of the traits. Another architecture has another compiler, and what a compiler makes of a program
// (spills above all) is most of what a physical estimate misses: a device of it counts a twentieth.
std::vector<double> similarity_weights(const DeviceTraits& unknown, std::span<const DeviceTraits> known);

}  // namespace tensorsmith::learn
