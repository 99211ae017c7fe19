// Features of this machine's x86-64 processor, as CPUID reports them. The names are LLVM's.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tensorsmith {

struct CpuidRegisters {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};
// Returns zeros for a leaf that the processor does not know, and on other architectures. Slow in a
// virtual machine, since the host emulates the instruction.
CpuidRegisters cpuid(uint32_t leaf, uint32_t subleaf);

// The reason why a feature is in the table.
enum class CpuFeatureUse : uint8_t {
  kBase,         // every x86-64 processor has it
  kCode,         // kernels may use its instructions
  kMatrixUnits,  // as kCode, but most processors lack it
  kIdentifies,   // distinguishes generations of processors; no kernel uses it
};

struct CpuFeature {
  std::string_view name;
  CpuFeatureUse use = CpuFeatureUse::kCode;
  bool reported = false;  // the processor has it
  uint64_t state = 0;     // bits of XCR0: registers that the operating system must save for it
  // Tells whether this process may use it. Requests the permission for matrix units (may_use_tiles).
  bool usable() const;
};

// All features in the order in which devices list them; empty on other architectures.
std::span<const CpuFeature> cpu_features();
// Tells whether this process may use the feature: also "neon" on aarch64.
bool cpu_has_feature(std::string_view feature);

}  // namespace tensorsmith
