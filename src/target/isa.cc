#include "target/isa.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace tensorsmith::target {
namespace {

constexpr std::array<std::string_view, 3> kAboveAvx512 = {"amx-tile", "amx-int8", "amx-bf16"};
// The level AVX2 is that of processors from Haswell to Zen 3, so it lacks AVX-VNNI and its relatives, too.
constexpr std::array<std::string_view, 18> kAboveAvx2 = {
    "avx512f",    "avx512cd",           "avx512dq",   "avx512bw",     "avx512vl",        "avx512ifma",
    "avx512vbmi", "avx512vbmi2",        "avx512vnni", "avx512bitalg", "avx512vpopcntdq", "avx512bf16",
    "avx512fp16", "avx512vp2intersect", "avxvnni",    "avxifma",      "avxvnniint8",     "avxneconvert"};
constexpr std::array<std::string_view, 8> kAboveSse42 = {"avx",  "avx2",       "fma", "f16c",
                                                         "vaes", "vpclmulqdq", "xop", "fma4"};

constexpr IsaLevel kLevels[] = {
    {.name = "avx512",
     .needed = "avx512vl",
     .lacks = kAboveAvx512,
     .lacks_if = "amx-tile",
     .vector_bytes = 64,
     .vector_registers = 32},
    {.name = "avx2", .needed = "fma", .lacks = kAboveAvx2, .vector_bytes = 32},
    {.name = "sse4.2", .needed = "sse4.2", .lacks = kAboveSse42, .fma = false},
};

void remove_features(Device& device, std::span<const std::string_view> removed) {
  std::erase_if(device.features, [&](const std::string& f) {
    return std::find(removed.begin(), removed.end(), std::string_view(f).substr(1)) != removed.end();
  });
  for (std::string_view f : removed) device.features.push_back("-" + std::string(f));
}

}  // namespace

std::span<const IsaLevel> isa_levels() { return kLevels; }

const IsaLevel* isa_level(const Device& device) {
  for (const IsaLevel& level : kLevels) {
    if (device.has_feature(level.needed)) return &level;
  }
  return nullptr;
}

std::string isa_names(std::string_view separator) {
  std::string names;
  for (const IsaLevel& level : kLevels) {
    if (!names.empty()) names += separator;
    names += level.name;
  }
  return names;
}

Result<Device> with_isa(const Device& device, std::string_view isa) {
  if (isa == "native") return device;
  const std::string place = "device " + device.name;
  const auto* level =
      std::find_if(std::begin(kLevels), std::end(kLevels), [&](const IsaLevel& l) { return l.name == isa; });
  if (level == std::end(kLevels)) {
    return Error{ErrorCode::kInvalidArgument, place,
                 "unknown instruction set '" + std::string(isa) + "'; known are native, " + isa_names(", ")};
  }
  if (device.kind() != DeviceKind::kCpu || device.arch != "x86-64" || !device.has_feature(level->needed)) {
    return Error{ErrorCode::kUnsupported, place,
                 "has no " + std::string(isa) + " instructions; use isa=native or a weaker one"};
  }
  Device weaker = device;
  for (const IsaLevel* l = kLevels; l <= level; ++l) {
    if (l->lacks_if.empty() || device.has_feature(l->lacks_if)) remove_features(weaker, l->lacks);
  }
  const CpuFigures& native = device.cpu();
  CpuFigures& cpu = weaker.cpu();
  cpu.vector_registers = std::min(native.vector_registers, level->vector_registers);
  cpu.vector_bytes = std::min(native.vector_bytes, level->vector_bytes);
  // A core that splits wide vectors into two halves starts twice as many narrow ones.
  if (cpu.vector_bytes < native.vector_bytes && native.fma_per_cycle < 2)
    cpu.fma_per_cycle = 2 * native.fma_per_cycle;
  // Without FMA, a product takes a multiplication and an addition.
  if (!level->fma && device.has_feature("fma")) cpu.fma_per_cycle /= 2;
  weaker.peak_f32_gflops *=
      cpu.fma_per_cycle * cpu.vector_bytes / (native.fma_per_cycle * native.vector_bytes);
  return weaker;
}

}  // namespace tensorsmith::target
