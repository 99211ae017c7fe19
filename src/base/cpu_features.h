// Features of this machine's x86-64 processor, as CPUID reports them. The names are LLVM's.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tensorsmith {

struct CpuidRegisters {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};
// Executes CPUID. Returns zeros for a leaf that the processor does not know, and on other architectures. The
// instruction is slow in a virtual machine, since the host emulates it.
CpuidRegisters cpuid(uint32_t leaf, uint32_t subleaf);

// The reason why a feature is in the table.
enum class CpuFeatureUse : uint8_t {
  kBase,         // every x86-64 processor has the feature
  kCode,         // kernels may use its instructions
  kMatrixUnits,  // like kCode, but most processors lack the feature
  kIdentifies,   // distinguishes generations of processors; no kernel uses it
};

struct CpuFeature {
  std::string_view name;
  CpuFeatureUse use = CpuFeatureUse::kCode;
  bool reported = false;  // the processor has the feature
  uint64_t state = 0;     // bits of XCR0: the registers that the operating system must save
  // Tells whether this process may use the feature. Requests permission for matrix units (may_use_tiles).
  bool usable() const;
};

// Returns all features in the order in which devices list them; empty on other architectures.
std::span<const CpuFeature> cpu_features();
// Tells whether this process may use the feature; "neon" is the only feature of aarch64.
bool cpu_has_feature(std::string_view feature);

}  // namespace tensorsmith
