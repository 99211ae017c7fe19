#include "engine/device/measured_device.h"

#include <algorithm>
#include <optional>
#include <string>

#include "engine/device/gpu_device.h"
#include "runtime/device/gpu_platform.h"
#include "target/probe_clock.h"

namespace tensorsmith::engine {

bool is_local(const target::Device& device) { return device.name == "local"; }

bool is_measurable(const target::Device& device) { return is_local(device) || gpu_place(device); }

Status check_measurable(const target::Device& device, std::string_view work) {
  if (is_measurable(device)) return {};
  return Error{
      ErrorCode::kUnsupported, "device " + device.name,
      std::string(work) +
          " measures on this machine; use local, a variant of it (local:isa=avx2), or a GPU of it (" +
          runtime::gpu_names("", ", ") + ")"};
}

target::Device with_threads(target::Device device, int threads) {
  if (threads <= 0) return device;
  if (device.cpu().cores > 0) device.peak_f32_gflops *= static_cast<double>(threads) / device.cpu().cores;
  device.cpu().cores = threads;
  return device;
}

target::Device with_measurements(target::Device device) {
  if (gpu_place(device)) return with_gpu_measurements(std::move(device));
  if (!is_local(device)) return device;
  if (device.memory_bandwidth_gbs == 0)
    device.memory_bandwidth_gbs = target::measure_memory_bandwidth(device);
  return target::with_measured_clock(std::move(device));
}

namespace {

Result<std::optional<target::Device>> find_in(record::Database& database, const std::string& key) {
  TS_ASSIGN_OR_RETURN(auto known, database.devices());
  const auto at = std::find_if(known.begin(), known.end(), [&](const auto& d) { return d.key == key; });
  if (at == known.end()) return std::optional<target::Device>();
  return std::optional(std::move(at->device));
}

}  // namespace

Status register_device(const target::Device& device, record::Database& database) {
  TS_ASSIGN_OR_RETURN(const auto known, find_in(database, device.key()));
  if (known) return {};
  return database.add_device({device.key(), with_measurements(device)});
}

Result<target::Device> described_device(const target::Device& device, record::Database& database) {
  TS_ASSIGN_OR_RETURN(auto known, find_in(database, device.key()));
  return with_measurements(known ? *known : device);  // older databases lack some of the measurements
}

}  // namespace tensorsmith::engine
