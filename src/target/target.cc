#include "target/target.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "target/attributes.h"

namespace tensorsmith::target {
namespace {

// Returns the figures as those of one kind of devices.
template <typename Figures>
auto& of_kind(auto& figures) {
  auto* found = std::get_if<Figures>(&figures);
  TS_CHECK(found != nullptr, "the device has figures of the other kind");
  return *found;
}

}  // namespace

const CpuFigures& Device::cpu() const { return of_kind<CpuFigures>(figures); }
CpuFigures& Device::cpu() { return of_kind<CpuFigures>(figures); }
const GpuFigures& Device::gpu() const { return of_kind<GpuFigures>(figures); }
GpuFigures& Device::gpu() { return of_kind<GpuFigures>(figures); }

int Device::compute_units() const { return kind() == DeviceKind::kCpu ? cpu().cores : gpu().multiprocessors; }
int Device::register_bytes() const {
  return kind() == DeviceKind::kCpu ? cpu().vector_bytes : gpu().lane_bytes;
}
int Device::register_count() const {
  return kind() == DeviceKind::kCpu ? cpu().vector_registers : gpu().registers_per_thread;
}
double Device::fma_per_cycle() const {
  return kind() == DeviceKind::kCpu ? cpu().fma_per_cycle : gpu().lanes;
}

const GpuFigures& gpu_or_no_limits(const Device& device) {
  static const GpuFigures kNone;
  return device.kind() == DeviceKind::kGpu ? device.gpu() : kNone;
}

// The name, description, sources and memory size do not change how long a program runs. The base
// and boost clocks and the limits per multiprocessor follow from the other attributes. Features are
// sorted, because their order means nothing. The power limits the clock that is reached.
std::string Device::key() const {
  std::vector<std::string> sorted = features;
  std::sort(sorted.begin(), sorted.end());
  Hasher h;
  h.add("tensorsmith device 1").add(kind()).add(arch).add(processor);
  h.add(sorted.size());
  for (const std::string& f : sorted) h.add(f);
  // Integers are hashed before other numbers. The figures of a GPU are hashed as 0 for a CPU.
  for (const Attribute& a : target::attributes()) {
    if (!a.is(Attribute::kInKey)) continue;
    const bool has = visit_value(a, *this, [&]<typename T>(const T& value) {
      if constexpr (std::is_integral_v<T>) h.add(static_cast<int64_t>(value));
    });
    if (!has) h.add(uint64_t{0});
  }
  for (const Attribute& a : target::attributes()) {
    visit_value(a, *this, [&]<typename T>(const T& value) {
      if constexpr (std::is_same_v<T, double>) {
        if (a.is(Attribute::kInKey) || (a.is(Attribute::kInKeyIfKnown) && value > 0))
          h.add(std::bit_cast<uint64_t>(value));
      }
    });
  }
  return h.hex128();
}

bool Device::has_feature(std::string_view feature) const {
  return std::any_of(features.begin(), features.end(), [&](const std::string& f) {
    return f.size() == feature.size() + 1 && f[0] == '+' && f.compare(1, std::string::npos, feature) == 0;
  });
}

double peak_gflops(int compute_units, double clock_ghz, double fma_per_cycle, int register_bytes) {
  return compute_units * clock_ghz * fma_per_cycle * 2 * (register_bytes / 4.0);
}
double computed_peak_gflops(const Device& device) {
  return peak_gflops(device.compute_units(), device.clock_ghz, device.fma_per_cycle(),
                     device.register_bytes());
}

bool has_dot4(const Device& device) {
  if (device.register_bytes() > 32) return device.has_feature("avx512vnni");
  return device.has_feature("avxvnni") ||
         (device.has_feature("avx512vnni") && device.has_feature("avx512vl"));
}

bool has_dot2(const Device& device) {
  return device.has_feature("avx512bf16") && (device.register_bytes() > 32 || device.has_feature("avx512vl"));
}

bool has_matrix_dot4(const Device& device) {
  return device.has_feature("amx-tile") && device.has_feature("amx-int8");
}

bool has_matrix_dot2(const Device& device) {
  return device.has_feature("amx-tile") && device.has_feature("amx-bf16");
}

bool has_masked_memory(const Device& device) {
  return device.has_feature("avx512vl") && device.has_feature("avx512bw");
}

}  // namespace tensorsmith::target
