#include "engine/device/gpu_device.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "runtime/device/probe.h"
#include "target/machine.h"

namespace tensorsmith::engine {
namespace {

using runtime::GpuPlatform;
using runtime::GpuProperties;
using target::Device;
using target::GpuFigures;

// Tolerated relative differences between a driver's figures of a board and those of its data sheet.
constexpr double kBandwidthTolerance = 0.02;
constexpr double kMemoryTolerance = 0.1;  // a part of the memory is reserved

// Typical values of attributes that OpenCL does not report for most devices.
constexpr int kUsualWarp = 32, kUsualBlocksPerCore = 16, kUsualRegisters = 65536,
              kUsualRegistersPerThread = 255;
constexpr double kUsualLanes = 64, kUsualClockGhz = 1;
constexpr double kUsualLaunchUs = 5;
constexpr int kUsualVthreads = 8;

bool near(double value, double expected, double tolerance) {
  return std::abs(value - expected) <= tolerance * expected;
}

bool says_pcie(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name.find("pcie") != std::string::npos;
}

std::string architecture(const GpuProperties& p) {
  return "sm_" + std::to_string(p.compute_major) + std::to_string(p.compute_minor);
}

// Returns the known board with these figures. Among boards with the same figures, the form factor
// (PCIe or not) and the clock decide.
const Device* known_board(const GpuProperties& p) {
  const Device* best = nullptr;
  const auto distance = [&](const Device& d) {
    return std::tuple(says_pcie(d.name) != says_pcie(p.name), std::abs(d.clock_ghz - p.clock_ghz));
  };
  const double memory_gb = static_cast<double>(p.memory_bytes) / (int64_t{1} << 30);
  for (const Device& d : target::registry()) {
    if (!p.place.platform->runs(d.arch) || d.processor != architecture(p) ||
        d.compute_units() != p.multiprocessors)
      continue;
    if (!near(p.memory_bandwidth_gbs, d.memory_bandwidth_gbs, kBandwidthTolerance)) continue;
    if (!near(memory_gb, d.memory_gb, kMemoryTolerance)) continue;
    if (!best || distance(d) < distance(*best)) best = &d;
  }
  return best;
}

// Returns a known NVIDIA board of the same architecture, else of the newest earlier architecture, else of
// the oldest.
const Device* relative(const GpuProperties& p) {
  const int wanted = 10 * p.compute_major + p.compute_minor;
  const Device* best = nullptr;
  const auto rank = [&](const Device& d) {
    const int number = target::compute_capability(d);
    return number <= wanted ? number : -number;
  };
  for (const Device& d : target::registry()) {
    if (target::compute_capability(d) > 0 && (!best || rank(d) > rank(*best))) best = &d;
  }
  return best;
}

template <typename T>
T or_usual(T value, T usual) {
  return value > 0 ? value : usual;
}

// The driver's figures take precedence over those of `d`.
void set_figures(const GpuProperties& p, Device& d) {
  d.clock_ghz = or_usual(p.clock_ghz, d.clock_ghz);
  d.boost_clock_ghz = d.clock_ghz;
  d.base_clock_ghz = 0;
  d.l2_bytes = std::max(or_usual(p.l2_bytes, d.l2_bytes), d.l1_bytes);
  d.cacheline_bytes = or_usual(p.cacheline_bytes, d.cacheline_bytes);
  d.memory_bandwidth_gbs = p.memory_bandwidth_gbs;
  d.memory_gb = static_cast<double>(p.memory_bytes) / (int64_t{1} << 30);
  GpuFigures& gpu = d.gpu();
  gpu.multiprocessors = std::max(p.multiprocessors, 1);
  gpu.warp_size = or_usual(p.warp_size, gpu.warp_size);
  gpu.max_threads_per_block = or_usual(p.max_threads_per_block, gpu.max_threads_per_block);
  gpu.warp_size = std::min(gpu.warp_size, gpu.max_threads_per_block);
  gpu.shared_memory_per_block = p.shared_memory_per_block;
  gpu.registers_per_block = or_usual(p.registers_per_block, gpu.registers_per_block);
  gpu.max_threads_per_core = std::max(p.max_threads_per_core, gpu.max_threads_per_block);
  gpu.max_blocks_per_core = or_usual(p.max_blocks_per_core, gpu.max_blocks_per_core);
  gpu.shared_memory_per_core = std::max(p.shared_memory_per_core, gpu.shared_memory_per_block);
  gpu.registers_per_core = std::max(p.registers_per_core, gpu.registers_per_block);
  d.peak_f32_gflops = target::computed_peak_gflops(d);
}

// Returns a device that is not a known board: the attributes that the driver does not report are those of
// `like`.
Device device_like(const Device& like, const GpuProperties& p) {
  Device d = like;
  d.processor = architecture(p);
  d.power_watts = 0;
  d.sources = {"the driver; warp size, L1 cache and launch overhead are assumed to be those of " + like.name};
  set_figures(p, d);
  return d;
}

Device typical_device(const GpuProperties& p) {
  Device d;
  d.figures = GpuFigures{.lanes = kUsualLanes,
                         .registers_per_thread = kUsualRegistersPerThread,
                         .warp_size = kUsualWarp,
                         .max_threads_per_block = kUsualWarp,
                         .registers_per_block = kUsualRegisters,
                         .max_vthread_extent = kUsualVthreads,
                         .max_blocks_per_core = kUsualBlocksPerCore};
  d.clock_ghz = kUsualClockGhz;
  d.launch_overhead_us = kUsualLaunchUs;
  d.sources = {"the " + std::string(p.place.platform->title) +
               " driver; attributes that it does not report are those of a typical GPU"};
  // NVIDIA's driver reports the architecture.
  if (p.compute_major > 0) {
    const Device* like = relative(p);
    d.gpu().lanes = like->gpu().lanes;
    d.l1_bytes = like->l1_bytes;
  }
  set_figures(p, d);
  d.processor = p.name;
  if (p.has_f64) d.features.emplace_back("+fp64");
  if (p.has_f16) d.features.emplace_back("+fp16");
  return d;
}

}  // namespace

std::optional<GpuPlace> gpu_place(const Device& device) {
  auto place = parse_gpu_place(device.name);
  return place.ok() ? *place : std::nullopt;
}

Device gpu_device(const GpuProperties& p) {
  const GpuPlatform& platform = *p.place.platform;
  const Device* board = known_board(p);
  const Device* like = relative(p);
  Device d = board ? *board : platform.runs(like->arch) ? device_like(*like, p) : typical_device(p);
  d.name = runtime::to_string(p.place);
  d.description = p.name + (p.vendor.empty() ? "" : ", " + p.vendor);
  d.arch = platform.archs.front();
  return d;
}

Result<Device> find_device(std::string_view spec) {
  TS_ASSIGN_OR_RETURN(const auto place, parse_gpu_place(spec));
  if (place) {
    TS_ASSIGN_OR_RETURN(const auto gpus, runtime::list_gpus(*place->platform));
    if (place->index < static_cast<int>(gpus.size())) return gpu_device(gpus[place->index]);
    return Error{ErrorCode::kNotFound, "device '" + std::string(spec) + "'",
                 "there are " + std::to_string(gpus.size()) + " devices of " +
                     std::string(place->platform->name) + " here, numbered from 0"};
  }
  auto device = target::find_device(spec);
  if (device.ok() || device.error().code != ErrorCode::kNotFound) return device;
  Error error = std::move(device).error();
  error.reason += "; the GPUs of this machine are " + runtime::gpu_names("[:N]", " and ");
  return error;
}

Device with_gpu_measurements(Device device) {
  const auto place = gpu_place(device);
  TS_CHECK(place.has_value(), "not a GPU of this machine");
  const auto gpu = runtime::open_gpu(*place);
  if (!gpu.ok()) return device;
  const auto measured = runtime::measure_gpu(**gpu);
  if (!measured.ok()) return device;
  device.launch_overhead_us = measured->launch_overhead_us;
  if (device.memory_bandwidth_gbs == 0) device.memory_bandwidth_gbs = measured->memory_bandwidth_gbs;
  return device;
}

FoundGpus find_gpus() {
  FoundGpus found;
  for (const GpuPlatform* platform : runtime::gpu_platforms()) {
    const auto gpus = runtime::list_gpus(*platform);
    if (!gpus.ok()) {
      found.missing.push_back(std::string(platform->name) + ": " + gpus.error().message());
      continue;
    }
    for (const GpuProperties& p : *gpus) found.devices.push_back(gpu_device(p));
  }
  return found;
}

}  // namespace tensorsmith::engine
