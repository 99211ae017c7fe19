// Variants of a device with a weaker instruction set: the same caches and cores, fewer features.
#include <algorithm>
#include <array>

#include "target/target.h"

namespace tensorsmith::target {
namespace {

// Features of x86-64 above each level. A removed feature is listed as "-feature", because the CPU
// name alone implies it. The level AVX2 is that of processors from Haswell to Zen 3, so it excludes
// AVX-VNNI and its relatives, too.
constexpr std::array<std::string_view, 3> kAboveAvx512 = {"amx-tile", "amx-int8", "amx-bf16"};
constexpr std::array<std::string_view, 18> kAboveAvx2 = {
    "avx512f",    "avx512cd",           "avx512dq",   "avx512bw",     "avx512vl",        "avx512ifma",
    "avx512vbmi", "avx512vbmi2",        "avx512vnni", "avx512bitalg", "avx512vpopcntdq", "avx512bf16",
    "avx512fp16", "avx512vp2intersect", "avxvnni",    "avxifma",      "avxvnniint8",     "avxneconvert"};
constexpr std::array<std::string_view, 8> kAboveSse42 = {"avx",  "avx2",       "fma", "f16c",
                                                         "vaes", "vpclmulqdq", "xop", "fma4"};

template <size_t N>
void remove_features(Device& device, const std::array<std::string_view, N>& removed) {
  std::erase_if(device.features, [&](const std::string& f) {
    return std::find(removed.begin(), removed.end(), std::string_view(f).substr(1)) != removed.end();
  });
  for (std::string_view f : removed) device.features.push_back("-" + std::string(f));
}

}  // namespace

Result<Device> with_isa(const Device& device, std::string_view isa) {
  if (isa == "native") return device;
  const bool avx512 = isa == "avx512";
  const bool avx2 = isa == "avx2";
  const std::string place = "device " + device.name;
  if (!avx512 && !avx2 && isa != "sse4.2") {
    return Error{
        ErrorCode::kInvalidArgument, place,
        "unknown instruction set '" + std::string(isa) + "'; known are native, avx512, avx2, sse4.2"};
  }
  const std::string_view needed = avx512 ? "avx512vl" : avx2 ? "fma" : "sse4.2";
  if (device.arch != "x86-64" || !device.has_feature(needed)) {
    return Error{ErrorCode::kUnsupported, place,
                 "has no " + std::string(isa) + " instructions; use isa=native or a weaker one"};
  }
  Device weaker = device;
  if (device.has_feature("amx-tile")) remove_features(weaker, kAboveAvx512);
  if (avx512) return weaker;
  const double lanes_before = device.fma_per_cycle * device.vector_bytes;
  remove_features(weaker, kAboveAvx2);
  weaker.vector_registers = 16;
  weaker.vector_bytes = std::min(device.vector_bytes, 32);
  if (!avx2) {
    remove_features(weaker, kAboveSse42);
    weaker.vector_bytes = 16;
  }
  // A core that splits wide vectors into two halves starts twice as many narrow ones.
  if (weaker.vector_bytes < device.vector_bytes && device.fma_per_cycle < 2)
    weaker.fma_per_cycle = 2 * device.fma_per_cycle;
  // Without FMA, a product takes a multiplication and an addition.
  if (!avx2 && device.has_feature("fma")) weaker.fma_per_cycle /= 2;
  weaker.peak_f32_gflops *= weaker.fma_per_cycle * weaker.vector_bytes / lanes_before;
  return weaker;
}

}  // namespace tensorsmith::target
