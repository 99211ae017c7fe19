#include "target/micro_architecture.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tensorsmith::target {
namespace {

struct Core {
  std::string_view name;              // LLVM's name
  std::array<uint8_t, 6> models;      // Intel's model numbers of family 6; AMD's are in amd_name
  std::array<const char*, 2> beyond;  // features that later processors have and this core lacks
  int fma_bytes;                      // bytes of the FMAs that all pipes together start per cycle
  std::string_view rates_of;          // name of the core whose rates are used; empty: its own
  bool adders = false;                // has pipes for additions apart from those for FMAs
};

// Sources. Models: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 4, table
// 2-1. FMA pipes: the vendors' optimization guides.
constexpr Core kCores[] = {
    // Intel's large cores before AVX2. They have no FMAs; fma_bytes counts the pipes for
    // multiplications and additions.
    {"nehalem", {0x1a, 0x1e, 0x1f, 0x2e}, {"avx"}, 32, "haswell"},
    {"westmere", {0x25, 0x2c, 0x2f}, {"avx"}, 32, "haswell"},
    {"sandybridge", {0x2a, 0x2d}, {"avx2"}, 64, "haswell"},
    {"ivybridge", {0x3a, 0x3e}, {"avx2"}, 64, "haswell"},
    // Intel's large cores with AVX2.
    {"haswell", {0x3c, 0x3f, 0x45, 0x46}, {"adx", "avx512f"}, 64, ""},
    {"broadwell", {0x3d, 0x47, 0x4f, 0x56}, {"avx512f", "avxvnni"}, 64, ""},
    {"skylake", {0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6}, {"avx512f", "avxvnni"}, 64, ""},
    // Server cores with AVX-512. Model 0x55 is Skylake, Cascade Lake or Cooper Lake; the features
    // tell which.
    {"skylake-avx512", {0x55}, {"avx512vnni", "avx512vbmi"}, 128, ""},
    {"cascadelake", {}, {"avx512bf16", "avx512vbmi"}, 128, ""},
    {"cooperlake", {}, {"avx512vbmi", "avxvnni"}, 128, "cascadelake"},
    {"icelake-server", {0x6a, 0x6c}, {"avx512bf16", "avxvnni"}, 128, ""},
    {"sapphirerapids", {0x8f}, {"amx-fp16", "prefetchi"}, 128, "", true},
    {"emeraldrapids", {0xcf}, {"amx-fp16", "prefetchi"}, 128, "", true},
    {"graniterapids", {0xad, 0xae}, {}, 128, "", true},
    // Client cores with AVX-512: a single 512-bit pipe.
    {"icelake-client", {0x7d, 0x7e}, {"avx512bf16", "avxvnni"}, 64, "rocketlake"},
    {"tigerlake", {0x8c, 0x8d}, {"avx512bf16", "avxvnni"}, 64, "icelake-server"},
    {"rocketlake", {0xa7}, {"avx512bf16", "avxvnni"}, 64, ""},
    // Hybrid processors, described by their large cores.
    {"alderlake", {0x97, 0x9a}, {"avx512f"}, 64, "", true},
    {"raptorlake", {0xb7, 0xba, 0xbf}, {"avx512f"}, 64, "alderlake", true},
    {"meteorlake", {0xaa, 0xac}, {"avx512f"}, 64, "alderlake", true},
    {"arrowlake", {0xb5, 0xc5}, {"avx512f"}, 64, "alderlake", true},
    {"arrowlake-s", {0xc6}, {"avx512f"}, 64, "alderlake", true},
    {"lunarlake", {0xbd}, {"avx512f"}, 64, "alderlake", true},
    {"pantherlake", {0xcc}, {"avx512f"}, 64, "alderlake", true},
    // Small cores: two 128-bit pipes, or four.
    {"silvermont", {0x37, 0x4a, 0x4c, 0x4d, 0x5a, 0x5d}, {"avx"}, 32, "tremont"},
    {"goldmont", {0x5c, 0x5f}, {"avx"}, 32, "tremont"},
    {"goldmont-plus", {0x7a}, {"avx"}, 32, "tremont"},
    {"tremont", {0x86, 0x8a, 0x96, 0x9c}, {"avx"}, 32, ""},
    {"gracemont", {0xbe}, {"avx512f"}, 32, ""},
    {"sierraforest", {0xaf}, {"avx512f"}, 32, ""},
    {"grandridge", {0xb6}, {"avx512f"}, 32, "sierraforest"},
    {"clearwaterforest", {0xdd}, {"avx512f"}, 64, "sierraforest"},
    // AMD.
    {"znver1", {}, {"clwb", "vaes"}, 32, "znver2", true},
    {"znver2", {}, {"vaes", "avx512f"}, 64, "", true},
    {"znver3", {}, {"avx512f"}, 64, "", true},
    {"znver4", {}, {"avx512vp2intersect", "avxvnni"}, 64, "", true},
    {"znver5", {}, {}, 128, "", true},
};

const Core* find_core(std::string_view name) {
  const auto* it =
      std::find_if(std::begin(kCores), std::end(kCores), [&](const Core& core) { return core.name == name; });
  return it == std::end(kCores) ? nullptr : it;
}

std::string_view intel_name(int family, int model) {
  if (family != 6 || model == 0) return {};
  for (const Core& core : kCores)
    if (std::find(core.models.begin(), core.models.end(), model) != core.models.end()) return core.name;
  return {};
}

std::string_view amd_name(int family, int model) {
  if (family >= 0x1a) return "znver5";
  const int sixteen = model >> 4;
  if (family == 0x19)
    return sixteen == 1 || sixteen == 6 || sixteen == 7 || sixteen == 10 ? "znver4" : "znver3";
  if (family == 0x17) return sixteen >= 3 ? "znver2" : "znver1";
  return {};
}

// Returns whether the processor has a feature that a core of this name lacks.
bool is_contradicted(std::string_view name, const ProcessorId& id) {
  const Core* core = find_core(name);
  return core != nullptr && std::any_of(core->beyond.begin(), core->beyond.end(), [&](const char* feature) {
           return feature != nullptr && id.has(feature);
         });
}

// Newest cores first, so that a core newer than all known ones is taken for the newest.
std::string_view intel_name_by_features(const ProcessorId& id) {
  if (id.has("amx-fp16") || (id.has("avx512fp16") && id.has("prefetchi"))) return "graniterapids";
  if (id.has("avx512fp16")) return "sapphirerapids";
  if (id.has("avx512bf16")) return id.has("avx512vbmi2") ? "sapphirerapids" : "cooperlake";
  if (id.has("avx512vbmi2")) return "icelake-server";
  if (id.has("avx512vnni")) return "cascadelake";
  if (id.has("avx512vl")) return "skylake-avx512";
  if (id.has("avxvnni")) return "alderlake";
  if (id.has("avx2")) return id.has("adx") ? "skylake" : "haswell";
  return {};
}

// Newest cores first, as for Intel.
std::string_view amd_name_by_features(const ProcessorId& id) {
  if (id.has("avx512vl")) return id.has("avx512vp2intersect") || id.has("avxvnni") ? "znver5" : "znver4";
  if (!id.has("avx2")) return {};
  if (id.has("vaes")) return "znver3";
  if (id.has("clwb")) return "znver2";
  // Excavator has AVX2 without ADX.
  return id.has("adx") ? "znver1" : "";
}

std::string_view level_of_x86_64(const ProcessorId& id) {
  if (id.has("avx512vl")) return "x86-64-v4";
  if (id.has("avx2")) return "x86-64-v3";
  return id.has("sse4.2") ? "x86-64-v2" : "x86-64";
}

}  // namespace

bool ProcessorId::has(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

std::string_view micro_architecture(const ProcessorId& id) {
  const bool intel = id.vendor == "GenuineIntel";
  const bool amd = id.vendor == "AuthenticAMD";
  std::string_view name;
  if (intel) name = intel_name(id.family, id.model);
  if (amd) name = amd_name(id.family, id.model);
  if (name.empty() || is_contradicted(name, id)) {
    name = {};
    if (intel) name = intel_name_by_features(id);
    if (amd) name = amd_name_by_features(id);
  }
  return name.empty() ? level_of_x86_64(id) : name;
}

double products_per_cycle(const Device& device) {
  if (device.arch != "x86-64" || device.has_feature("fma")) return device.fma_per_cycle();
  // The fastest SSE4.2 kernels on an Emerald Rapids and a Zen 4 reach 1.47 and 1.51 pairs per
  // cycle.
  const Core* core = find_core(device.processor);
  const bool adders = core != nullptr && core->adders;
  return adders ? 1.5 * device.fma_per_cycle() : device.fma_per_cycle();
}

double fma_per_cycle(const ProcessorId& id, std::string_view name, int vector_bytes) {
  // Without FMA, a pair occupies two pipes: one for the multiplication, one for the addition.
  if (!id.has("fma")) return 1;
  const Core* core = find_core(name);
  // Most cores have two pipes for vectors of any width.
  if (core == nullptr) return 2;
  int bytes = core->fma_bytes;
  // Zen 5 in most laptops (Strix Point, Krackan Point) has half the width.
  if (name == "znver5" && id.family == 0x1a && (id.model >> 4 == 2 || id.model >> 4 == 6)) bytes /= 2;
  return std::min(2.0, static_cast<double>(bytes) / vector_bytes);
}

CoreRates known_rates(std::string_view cpu) {
  const Core* core = find_core(cpu);
  const std::string_view wanted = core != nullptr && !core->rates_of.empty() ? core->rates_of : cpu;
  for (const Device& known : registry())
    if (known.kind() == DeviceKind::kCpu && known.processor == wanted) return known.cpu().rates;
  return {};
}

}  // namespace tensorsmith::target
