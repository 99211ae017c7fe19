#include "target/assumed.h"

#include <algorithm>
#include <charconv>

namespace tensorsmith::target {
namespace {

struct Assumed {
  double clock_ghz, bandwidth_gbs;
};
const Assumed& assumed_figures(DeviceKind kind) {
  static constexpr Assumed kCpu = {2, 20}, kGpu = {1, 100};
  return kind == DeviceKind::kCpu ? kCpu : kGpu;
}

std::string text_of(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc() ? std::string(buffer, end) : std::string();
}

}  // namespace

Result<std::vector<AssumedAttribute>> assumed_attributes(std::string_view spec, const Device& device) {
  std::vector<std::string> left_out;
  const std::string name(spec.substr(0, spec.find(':')));
  if (is_device_file(name)) {
    TS_ASSIGN_OR_RETURN(const std::string text, read_device_text(name));
    TS_ASSIGN_OR_RETURN(left_out, left_out_attributes(text));
  }
  std::vector<AssumedAttribute> out;
  const auto add = [&](const char* attribute, bool unknown, const std::string& value) {
    if (unknown || std::find(left_out.begin(), left_out.end(), attribute) != left_out.end())
      out.push_back({attribute, value});
  };
  const auto or_assumed = [](double value, double assumed) { return text_of(value > 0 ? value : assumed); };
  add("cores", false, std::to_string(device.cores));
  add("clock_ghz", device.clock_ghz <= 0,
      or_assumed(device.clock_ghz, assumed_figures(device.kind).clock_ghz));
  add("vector_bytes", false, std::to_string(device.vector_bytes));
  add("vector_registers", false, std::to_string(device.vector_registers));
  add("fma_per_cycle", false, text_of(device.fma_per_cycle));
  add("l1_bytes", false, std::to_string(device.l1_bytes));
  add("l2_bytes", false, std::to_string(device.l2_bytes));
  if (device.kind == DeviceKind::kCpu)
    add("l3_bytes", false, device.l3_bytes > 0 ? std::to_string(device.l3_bytes) : "0 (no such cache)");
  add("cacheline_bytes", false, std::to_string(device.cacheline_bytes));
  add("memory_bandwidth_gbs", device.memory_bandwidth_gbs <= 0,
      or_assumed(device.memory_bandwidth_gbs, assumed_figures(device.kind).bandwidth_gbs));
  return out;
}

std::string to_string(const std::vector<AssumedAttribute>& attributes) {
  std::string out;
  for (const AssumedAttribute& a : attributes) out += (out.empty() ? "" : ", ") + a.name + " " + a.value;
  return out;
}

namespace {

void assume(auto& value, auto assumed) {
  if (value <= 0) value = assumed;
}

void assume_rates(CoreRates& rates) {
  assume(rates.loads_per_cycle, 1.6);
  assume(rates.issue_per_cycle, 4.0);
  assume(rates.fma_latency, 4.0);
  assume(rates.dot2_latency, 6.0);
  assume(rates.reorder_buffer, 320);
  assume(rates.l2_bytes_per_cycle, 32.0);
  assume(rates.l3_bytes_per_cycle, 16.0);
  assume(rates.l2_ways, 16);
  assume(rates.tlb_bytes, int64_t{9} << 19);
  assume(rates.parallel_overhead_us, 3.0);
}

}  // namespace

Device with_assumed_figures(Device device) {
  const Assumed& assumed = assumed_figures(device.kind);
  if (device.kind == DeviceKind::kCpu) {
    assume(device.fma_per_cycle, 1.0);
    assume(device.l1_bytes, int64_t{32} << 10);
    assume(device.l2_bytes, int64_t{256} << 10);
    assume_rates(device.rates);
  }
  if (device.clock_ghz <= 0) device.peak_f32_gflops = 0;
  assume(device.clock_ghz, assumed.clock_ghz);
  assume(device.memory_bandwidth_gbs, assumed.bandwidth_gbs);
  assume(device.peak_f32_gflops, computed_peak_gflops(device));
  return device;
}

}  // namespace tensorsmith::target
