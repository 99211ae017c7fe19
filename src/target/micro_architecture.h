// The micro-architecture of an x86-64 processor under LLVM's name for it, and properties that
// follow from the name and that CPUID does not report. The name only decides the scheduling and
// tuning of generated code; the instructions that the code may use are given by Device::features.
#pragma once

#include <string_view>
#include <vector>

#include "target/target.h"

namespace tensorsmith::target {

// Vendor, family, model and features of a processor, as CPUID reports them.
struct ProcessorId {
  std::string_view vendor;    // "GenuineIntel", "AuthenticAMD"
  int family = 0, model = 0;  // including the extended family and model, as in /proc/cpuinfo
  // The features that the processor has, spelled as in Device::features without the "+". The list
  // includes some that no kernel uses and that distinguish generations: "clwb", "amx-fp16",
  // "prefetchi".
  std::vector<std::string_view> features;

  bool has(std::string_view feature) const;
};

// Returns LLVM's name of the processor. The reported model is ignored if the processor has a
// feature that is newer than that model: virtual machines report models that they do not run on.
// Such processors and those of unknown models are named by their features if they are Intel's or
// AMD's and have AVX2. All others are named by their level of x86-64, e.g. "x86-64-v2".
std::string_view micro_architecture(const ProcessorId& id);

// Returns how many vector FMAs of `vector_bytes` a core of this name starts per cycle; for
// processors without FMA, how many pairs of a multiplication and an addition.
double fma_per_cycle(const ProcessorId& id, std::string_view name, int vector_bytes);

// Returns the largest number of whole-vector products that a core can accumulate per cycle. This is
// Device::fma_per_cycle(). Without FMA, where multiplications and additions are separate
// instructions, it is 1.5 times as many on cores that have separate pipes for additions.
double products_per_cycle(const Device& device);

// Returns the rates of the first known device with this core, else with the core that is listed as
// its nearest relative; all 0 if there is none.
CoreRates known_rates(std::string_view cpu);

}  // namespace tensorsmith::target
