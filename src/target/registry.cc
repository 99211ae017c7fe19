#include <nlohmann/json.hpp>

#include "target/device_files.h"

namespace tensorsmith::target {
namespace {

using Json = nlohmann::json;

// Reads one member if present; false if it has another type.
template <typename T>
bool read(const Json& value, T& out) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) return false;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!value.is_number()) return false;
  } else if constexpr (std::is_integral_v<T>) {
    if (!value.is_number_integer()) return false;
  } else {
    if (!value.is_array()) return false;
    for (const Json& item : value)
      if (!item.is_string()) return false;
  }
  out = value.get<T>();
  return true;
}

}  // namespace

Result<Device> parse_device(std::string_view text, std::string_view place) {
  const auto fail = [&](std::string reason) {
    return Error{ErrorCode::kCorrupt, std::string(place), std::move(reason)};
  };
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return fail("not a JSON object");
  Device d;
  for (const auto& [key, value] : root.items()) {
    bool typed = false;
    if (key == "kind") {
      typed = value == "cpu" || value == "gpu";
      d.kind = value == "gpu" ? DeviceKind::kGpu : DeviceKind::kCpu;
    } else if (key == "name") {
      typed = read(value, d.name);
    } else if (key == "description") {
      typed = read(value, d.description);
    } else if (key == "arch") {
      typed = read(value, d.arch);
    } else if (key == "cpu") {
      typed = read(value, d.cpu);
    } else if (key == "features") {
      typed = read(value, d.features);
    } else if (key == "cores") {
      typed = read(value, d.cores);
    } else if (key == "clock_ghz") {
      typed = read(value, d.clock_ghz);
    } else if (key == "vector_bytes") {
      typed = read(value, d.vector_bytes);
    } else if (key == "vector_registers") {
      typed = read(value, d.vector_registers);
    } else if (key == "fma_per_cycle") {
      typed = read(value, d.fma_per_cycle);
    } else if (key == "l1_bytes") {
      typed = read(value, d.l1_bytes);
    } else if (key == "l2_bytes") {
      typed = read(value, d.l2_bytes);
    } else if (key == "l3_bytes") {
      typed = read(value, d.l3_bytes);
    } else if (key == "cacheline_bytes") {
      typed = read(value, d.cacheline_bytes);
    } else if (key == "memory_bandwidth_gbs") {
      typed = read(value, d.memory_bandwidth_gbs);
    } else if (key == "memory_gb") {
      typed = read(value, d.memory_gb);
    } else if (key == "peak_f32_gflops") {
      typed = read(value, d.peak_f32_gflops);
    } else if (key == "warp_size") {
      typed = read(value, d.warp_size);
    } else if (key == "max_threads_per_block") {
      typed = read(value, d.max_threads_per_block);
    } else if (key == "shared_memory_per_block") {
      typed = read(value, d.shared_memory_per_block);
    } else if (key == "registers_per_block") {
      typed = read(value, d.registers_per_block);
    } else if (key == "max_vthread_extent") {
      typed = read(value, d.max_vthread_extent);
    } else {
      return fail("unknown attribute '" + key + "'");
    }
    if (!typed) return fail("attribute '" + key + "' has the wrong type");
  }
  if (d.name.empty() || d.arch.empty() || d.cores < 1 || d.vector_bytes < 1)
    return fail("name, arch, cores and vector_bytes are required");
  for (const std::string& f : d.features)
    if (f.size() < 2 || (f[0] != '+' && f[0] != '-'))
      return fail("feature '" + f + "' does not start with + or -");
  return d;
}

const std::vector<Device>& registry() {
  static const std::vector<Device> devices = [] {
    std::vector<Device> all;
    for (const DeviceFile& file : device_files()) {
      Result<Device> device = parse_device(file.text, file.name);
      TS_CHECK(device.ok(), "compiled-in device file: " + device.error().message());
      all.push_back(std::move(device).value());
    }
    return all;
  }();
  return devices;
}

}  // namespace tensorsmith::target
