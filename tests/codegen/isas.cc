#include "codegen/isas.h"

#include <algorithm>

#include "base/result.h"

namespace tensorsmith::test {
namespace {

struct Isa {
  const char* name;
  int vector_bytes;
  int vector_registers;
  double fma_per_cycle;
  std::vector<std::string> adds;  // added to the preceding one, or to the one named `base`
  const char* base = nullptr;
};

const std::vector<Isa>& table() {
  static const std::vector<Isa> isas = {
      {"sse4.2", 16, 16, 1, {"sse4.2", "popcnt"}},
      {"avx", 32, 16, 1, {"avx"}},
      {"avx2", 32, 16, 2, {"avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt"}},
      {"avxvnni", 32, 16, 2, {"avxvnni"}},
      {"avx512", 64, 32, 2, {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}, "avx2"},
      {"avx512vnni", 64, 32, 2, {"avx512vnni"}},
      {"avx512bf16", 64, 32, 2, {"avx512bf16"}},
      {"amx", 64, 32, 2, {"amx-tile", "amx-int8", "amx-bf16"}},
  };
  return isas;
}

const Isa& find(const std::string& name) {
  for (const Isa& isa : table()) {
    if (isa.name == name) return isa;
  }
  throw_internal_error(__FILE__, __LINE__, "no instruction set " + name);
}

std::vector<std::string> features_of(const Isa& isa) {
  std::vector<std::string> features;
  const std::string base = isa.base != nullptr ? isa.base : &isa == &table()[0] ? "" : (&isa - 1)->name;
  if (!base.empty()) features = features_of(find(base));
  features.insert(features.end(), isa.adds.begin(), isa.adds.end());
  return features;
}

}  // namespace

const std::vector<std::string>& all_isas() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Isa& isa : table()) out.emplace_back(isa.name);
    return out;
  }();
  return names;
}

target::Device device_with(const std::string& name) {
  const Isa& isa = find(name);
  target::Device device;
  device.name = name;
  device.arch = "x86-64";
  device.processor = "x86-64";  // a CPU that has SSE2 and no other features
  for (const std::string& feature : features_of(isa)) device.features.push_back("+" + feature);
  device.cpu().cores = 2;
  device.cpu().vector_bytes = isa.vector_bytes;
  device.cpu().vector_registers = isa.vector_registers;
  device.cpu().fma_per_cycle = isa.fma_per_cycle;
  return device;
}

std::optional<target::Device> local_device_with(const std::string& name) {
  const Result<target::Device> local = target::probe_local();
  if (!local.ok() || local->arch != "x86-64") return std::nullopt;
  target::Device device = device_with(name);
  const bool runs =
      std::all_of(device.features.begin(), device.features.end(),
                  [&](const std::string& feature) { return local->has_feature(feature.substr(1)); });
  if (!runs) return std::nullopt;
  device.l1_bytes = local->l1_bytes;
  device.l2_bytes = local->l2_bytes;
  device.l3_bytes = local->l3_bytes;
  device.clock_ghz = local->clock_ghz;
  device.cpu().cores = local->cpu().cores;
  return device;
}

}  // namespace tensorsmith::test
