#include "learn/latency/device_columns.h"

#include <cmath>

#include "base/result.h"

namespace tensorsmith::learn {

namespace {

struct Column {
  const char* name;
  double (*value)(const target::Device&);
};

constexpr double kib(int64_t bytes) { return static_cast<double>(bytes) / 1024; }

constexpr Column kColumns[] = {
    {"device.cores", [](const target::Device& d) { return static_cast<double>(d.cores); }},
    {"device.clock_mhz", [](const target::Device& d) { return d.clock_ghz * 1e3; }},
    {"device.peak_f32_gflops", [](const target::Device& d) { return d.peak_f32_gflops; }},
    {"device.memory_bandwidth_gbs", [](const target::Device& d) { return d.memory_bandwidth_gbs; }},
    {"device.vector_bytes", [](const target::Device& d) { return static_cast<double>(d.vector_bytes); }},
    {"device.fma_per_cycle", [](const target::Device& d) { return d.fma_per_cycle; }},
    {"device.l1_kib", [](const target::Device& d) { return kib(d.l1_bytes); }},
    {"device.l2_kib", [](const target::Device& d) { return kib(d.l2_bytes); }},
    {"device.l3_kib", [](const target::Device& d) { return kib(d.l3_bytes); }},
    {"device.cacheline_bytes",
     [](const target::Device& d) { return static_cast<double>(d.cacheline_bytes); }},
    {"device.launch_overhead_us", [](const target::Device& d) { return d.launch_overhead_us; }},
    {"device.warp_size", [](const target::Device& d) { return static_cast<double>(d.warp_size); }},
    {"device.max_threads_per_core",
     [](const target::Device& d) { return static_cast<double>(d.max_threads_per_core); }},
    {"device.shared_kib_per_core", [](const target::Device& d) { return kib(d.shared_memory_per_core); }},
    {"device.registers_per_core",
     [](const target::Device& d) { return static_cast<double>(d.registers_per_core); }},
    {"device.gpu", [](const target::Device& d) { return d.kind == target::DeviceKind::kGpu ? 1.0 : 0.0; }},
};
static_assert(std::size(kColumns) == kDeviceColumns);

}  // namespace

std::array<float, kDeviceColumns> device_columns(const target::Device& device) {
  std::array<float, kDeviceColumns> out{};
  for (size_t c = 0; c < out.size(); ++c)
    out[c] = static_cast<float>(std::log2(kColumns[c].value(device) + 1));
  return out;
}

const char* device_column_name(int column) {
  TS_CHECK(column >= 0 && column < kDeviceColumns, "device_column_name: no such column");
  return kColumns[column].name;
}

}  // namespace tensorsmith::learn
