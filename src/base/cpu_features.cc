#include "base/cpu_features.h"

#include <vector>

#include "base/processors.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tensorsmith {
namespace {

// The bits of XCR0 for the tile registers of AMX.
constexpr uint64_t kTiles = 0x60000;

#if defined(__x86_64__)

// The bits of XCR0 for the registers of AVX and of AVX-512.
constexpr uint64_t kYmm = 0x6, kZmm = 0xe6;

// Returns the register states that the operating system saves; 0 if that is not known.
uint64_t saved_state(bool osxsave) {
  if (!osxsave) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

// The bits are from Intel's manual, volume 2A, CPUID, and AMD's manual, volume 3, appendix E.
std::vector<CpuFeature> read_features() {
  using enum CpuFeatureUse;
  const CpuidRegisters leaf1 = cpuid(1, 0), leaf7 = cpuid(7, 0), extended = cpuid(0x80000001, 0);
  const CpuidRegisters leaf7_1 = leaf7.eax >= 1 ? cpuid(7, 1) : CpuidRegisters{};
  const auto row = [](std::string_view name, uint32_t word, int bit, uint64_t state = 0,
                      CpuFeatureUse use = kCode) {
    return CpuFeature{name, use, ((word >> bit) & 1) != 0, state};
  };
  return {
      row("sse", leaf1.edx, 25, 0, kBase),
      row("sse2", leaf1.edx, 26, 0, kBase),
      row("sse3", leaf1.ecx, 0),
      row("ssse3", leaf1.ecx, 9),
      row("sse4.1", leaf1.ecx, 19),
      row("sse4.2", leaf1.ecx, 20),
      row("popcnt", leaf1.ecx, 23),
      row("movbe", leaf1.ecx, 22),
      row("aes", leaf1.ecx, 25),
      row("pclmul", leaf1.ecx, 1),
      row("bmi", leaf7.ebx, 3),
      row("bmi2", leaf7.ebx, 8),
      row("adx", leaf7.ebx, 19),
      row("lzcnt", extended.ecx, 5),
      row("gfni", leaf7.ecx, 8),
      row("avx", leaf1.ecx, 28, kYmm),
      row("avx2", leaf7.ebx, 5, kYmm),
      row("fma", leaf1.ecx, 12, kYmm),
      row("f16c", leaf1.ecx, 29, kYmm),
      row("vaes", leaf7.ecx, 9, kYmm),
      row("vpclmulqdq", leaf7.ecx, 10, kYmm),
      row("avxvnni", leaf7_1.eax, 4, kYmm),
      row("avxifma", leaf7_1.eax, 23, kYmm),
      row("avxvnniint8", leaf7_1.edx, 4, kYmm),
      row("avxneconvert", leaf7_1.edx, 5, kYmm),
      row("avx512f", leaf7.ebx, 16, kZmm),
      row("avx512dq", leaf7.ebx, 17, kZmm),
      row("avx512ifma", leaf7.ebx, 21, kZmm),
      row("avx512cd", leaf7.ebx, 28, kZmm),
      row("avx512bw", leaf7.ebx, 30, kZmm),
      row("avx512vl", leaf7.ebx, 31, kZmm),
      row("avx512vbmi", leaf7.ecx, 1, kZmm),
      row("avx512vbmi2", leaf7.ecx, 6, kZmm),
      row("avx512vnni", leaf7.ecx, 11, kZmm),
      row("avx512bitalg", leaf7.ecx, 12, kZmm),
      row("avx512vpopcntdq", leaf7.ecx, 14, kZmm),
      row("avx512vp2intersect", leaf7.edx, 8, kZmm),
      row("avx512bf16", leaf7_1.eax, 5, kZmm),
      row("avx512fp16", leaf7.edx, 23, kZmm),
      row("amx-tile", leaf7.edx, 24, kTiles, kMatrixUnits),
      row("amx-int8", leaf7.edx, 25, kTiles, kMatrixUnits),
      row("amx-bf16", leaf7.edx, 22, kTiles, kMatrixUnits),
      row("clwb", leaf7.ebx, 24, 0, kIdentifies),
      row("amx-fp16", leaf7_1.eax, 21, 0, kIdentifies),
      row("prefetchi", leaf7_1.edx, 14, 0, kIdentifies),
  };
}

#else

uint64_t saved_state(bool) { return 0; }
std::vector<CpuFeature> read_features() { return {}; }

#endif

}  // namespace

CpuidRegisters cpuid([[maybe_unused]] uint32_t leaf, [[maybe_unused]] uint32_t subleaf) {
  CpuidRegisters r;
#if defined(__x86_64__)
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
#endif
  return r;
}

bool CpuFeature::usable() const {
  static const uint64_t saved = saved_state(((cpuid(1, 0).ecx >> 27) & 1) != 0);
  return reported && (saved & state) == state && (state != kTiles || may_use_tiles());
}

std::span<const CpuFeature> cpu_features() {
  static const std::vector<CpuFeature> all = read_features();
  return all;
}

bool cpu_has_feature(std::string_view feature) {
#if defined(__aarch64__)
  if (feature == "neon") return true;  // part of the base architecture
#endif
  for (const CpuFeature& known : cpu_features()) {
    if (known.name == feature) return known.usable();
  }
  return false;
}

}  // namespace tensorsmith
