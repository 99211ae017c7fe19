// The levels of x86-64's instruction sets, one row each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "target/target.h"

namespace tensorsmith::target {

struct IsaLevel {
  std::string_view name;    // "avx2", as in "local:isa=avx2"
  std::string_view needed;  // LLVM's name of a feature that tells whether a device has the level
  // Features of the next stronger level that this level lacks. A removed feature is listed as "-feature",
  // because the name of the processor alone implies the feature.
  std::span<const std::string_view> lacks;
  std::string_view lacks_if;  // only devices with this feature lose `lacks`; empty: all devices do
  int vector_bytes = 16;
  int vector_registers = 16;
  bool fma = true;
};

// Returns all levels, the strongest first.
std::span<const IsaLevel> isa_levels();
// Returns the strongest level of the device, and null if it has none.
const IsaLevel* isa_level(const Device& device);
// Returns the names of all levels: isa_names(", ") is "avx512, avx2, sse4.2".
std::string isa_names(std::string_view separator);

}  // namespace tensorsmith::target
