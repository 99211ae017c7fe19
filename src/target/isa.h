// Instruction sets of x86-64 as levels, one row each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "target/target.h"

namespace tensorsmith::target {

struct IsaLevel {
  std::string_view name;    // "avx2", as in "local:isa=avx2"
  std::string_view needed;  // LLVM's name of a feature that tells whether a device has the level
  // Features of the next stronger level that this one lacks. A removed feature is listed as
  // "-feature", because the CPU name alone implies it.
  std::span<const std::string_view> lacks;
  std::string_view lacks_if;  // `lacks` are removed only from devices with this feature; empty: from all
  int vector_bytes = 16;
  int vector_registers = 16;
  bool fma = true;
};

// The strongest level is the first.
std::span<const IsaLevel> isa_levels();
// Returns the strongest level of the device, and null if it has none.
const IsaLevel* isa_level(const Device& device);
// Returns the names of all levels: "avx512, avx2, sse4.2".
std::string isa_names(std::string_view separator);

}  // namespace tensorsmith::target
