// The micro-architecture of an x86-64 processor, by LLVM's name, and what follows from it that CPUID does not
// say. The name decides scheduling and tuning of code only: which instructions code may use, the features of
// the device state.
#pragma once

#include <string_view>
#include <vector>

#include "target/target.h"

namespace tensorsmith::target {

// What CPUID says of a processor.
struct ProcessorId {
  std::string_view vendor;    // "GenuineIntel", "AuthenticAMD"
  int family = 0, model = 0;  // with their extensions, as in /proc/cpuinfo
  // Those that it has, as in Device::features without the "+". Also some that no kernel uses and that tell
  // generations apart: "clwb", "amx-fp16", "prefetchi".
  std::vector<std::string_view> features;

  bool has(std::string_view feature) const;
};

// LLVM's name of the processor. Its model is not believed where it has a feature that is newer than the
// model: virtual machines report models that they do not run on. Such processors and unknown models are named
// by their features, if they are Intel's or AMD's and have AVX2; all others get a level of x86-64, as
// "x86-64-v2".
std::string_view micro_architecture(const ProcessorId& id);

// Vector FMAs of this width that a core with this name starts a cycle; without FMAs, pairs of a
// multiplication and an addition.
double fma_per_cycle(const ProcessorId& id, std::string_view name, int vector_bytes);

// Products of whole vectors that a core of the device adds to sums in a cycle, at the most: fma_per_cycle, or half as many again where
// multiplications and additions are separate instructions, for want of FMAs, of which some cores start three a cycle.
double products_per_cycle(const Device& device);

// The rates of the first known device with this core, or else with the core that is most like it; all 0 if
// there is none.
CoreRates known_rates(std::string_view cpu);

}  // namespace tensorsmith::target
