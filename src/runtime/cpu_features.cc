#include "base/processors.h"
#include "runtime/model_format.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tensorsmith::runtime {
namespace {

#if defined(__x86_64__)
struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Slow in a virtual machine, since the host emulates the instruction.
Registers cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  // Fails, leaving zeros, if the CPU does not know the leaf.
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

// Returns the register state that the operating system saves; 0 if that is not known.
uint64_t enabled_state(bool osxsave) {
  if (!osxsave) return 0;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}
#endif

}  // namespace

std::string_view host_arch() {
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

bool cpu_has_feature(std::string_view feature) {
#if defined(__x86_64__)
  static const Registers leaf1 = cpuid(1, 0), leaf7 = cpuid(7, 0), extended = cpuid(0x80000001, 0);
  static const Registers leaf7_1 = leaf7.eax >= 1 ? cpuid(7, 1) : Registers{};
  static const uint64_t state = enabled_state((leaf1.ecx >> 27) & 1);
  constexpr uint64_t kNone = 0, kYmm = 0x6, kZmm = 0xe6,
                     kTiles = 0x60000;  // bits of XCR0 that the feature's registers need
  // Bits from Intel's manual, volume 2A, CPUID, and AMD's manual, volume 3, appendix E.
  const struct {
    std::string_view name;
    uint32_t word;
    int bit;
    uint64_t state;
  } table[] = {
      {"sse", leaf1.edx, 25, kNone},
      {"sse2", leaf1.edx, 26, kNone},
      {"sse3", leaf1.ecx, 0, kNone},
      {"ssse3", leaf1.ecx, 9, kNone},
      {"sse4.1", leaf1.ecx, 19, kNone},
      {"sse4.2", leaf1.ecx, 20, kNone},
      {"popcnt", leaf1.ecx, 23, kNone},
      {"movbe", leaf1.ecx, 22, kNone},
      {"aes", leaf1.ecx, 25, kNone},
      {"pclmul", leaf1.ecx, 1, kNone},
      {"bmi", leaf7.ebx, 3, kNone},
      {"bmi2", leaf7.ebx, 8, kNone},
      {"adx", leaf7.ebx, 19, kNone},
      {"lzcnt", extended.ecx, 5, kNone},
      {"gfni", leaf7.ecx, 8, kNone},
      {"avx", leaf1.ecx, 28, kYmm},
      {"avx2", leaf7.ebx, 5, kYmm},
      {"fma", leaf1.ecx, 12, kYmm},
      {"f16c", leaf1.ecx, 29, kYmm},
      {"vaes", leaf7.ecx, 9, kYmm},
      {"vpclmulqdq", leaf7.ecx, 10, kYmm},
      {"avxvnni", leaf7_1.eax, 4, kYmm},
      {"avxifma", leaf7_1.eax, 23, kYmm},
      {"avxvnniint8", leaf7_1.edx, 4, kYmm},
      {"avxneconvert", leaf7_1.edx, 5, kYmm},
      {"avx512f", leaf7.ebx, 16, kZmm},
      {"avx512dq", leaf7.ebx, 17, kZmm},
      {"avx512ifma", leaf7.ebx, 21, kZmm},
      {"avx512cd", leaf7.ebx, 28, kZmm},
      {"avx512bw", leaf7.ebx, 30, kZmm},
      {"avx512vl", leaf7.ebx, 31, kZmm},
      {"avx512vbmi", leaf7.ecx, 1, kZmm},
      {"avx512vbmi2", leaf7.ecx, 6, kZmm},
      {"avx512vnni", leaf7.ecx, 11, kZmm},
      {"avx512bitalg", leaf7.ecx, 12, kZmm},
      {"avx512vpopcntdq", leaf7.ecx, 14, kZmm},
      {"avx512vp2intersect", leaf7.edx, 8, kZmm},
      {"avx512bf16", leaf7_1.eax, 5, kZmm},
      {"avx512fp16", leaf7.edx, 23, kZmm},
      {"amx-tile", leaf7.edx, 24, kTiles},
      {"amx-int8", leaf7.edx, 25, kTiles},
      {"amx-bf16", leaf7.edx, 22, kTiles},
  };
  for (const auto& entry : table) {
    if (entry.name != feature) continue;
    const bool there = ((entry.word >> entry.bit) & 1) && (state & entry.state) == entry.state;
    return there && (entry.state != kTiles || may_use_tiles());
  }
  return false;
#elif defined(__aarch64__)
  return feature == "neon";  // part of the base architecture
#else
  (void)feature;
  return false;
#endif
}

Status check_cpu(const ModelDescription& description) {
  if (description.arch != host_arch()) {
    return Error{ErrorCode::kUnsupported, "",
                 "compiled for " + description.arch + ", this machine is " + std::string(host_arch())};
  }
  std::string missing;
  for (const auto& feature : description.cpu_features) {
    if (!cpu_has_feature(feature)) missing += (missing.empty() ? "" : ", ") + feature;
  }
  if (missing.empty()) return {};
  if (missing.starts_with("amx")) {
    return Error{ErrorCode::kUnsupported, "",
                 "compiled for the matrix units " + missing +
                     ", which this CPU does not have or the operating system does not let this process use "
                     "(the alternative signal stack of each thread must have room for their state of 8 KiB); "
                     "compile the model with isa=avx512"};
  }
  return Error{ErrorCode::kUnsupported, "",
               "compiled for " + missing +
                   ", which this CPU does not have; compile the model for this machine or for an older "
                   "instruction set"};
}

}  // namespace tensorsmith::runtime
