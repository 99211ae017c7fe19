#include "target/assumed.h"

#include <algorithm>
#include <charconv>

namespace tensorsmith::target {
namespace {

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
  add("clock_ghz", device.clock_ghz <= 0, or_assumed(device.clock_ghz, kAssumedClockGhz));
  add("vector_bytes", false, std::to_string(device.vector_bytes));
  add("vector_registers", false, std::to_string(device.vector_registers));
  add("fma_per_cycle", false, text_of(device.fma_per_cycle));
  add("l1_bytes", false, std::to_string(device.l1_bytes));
  add("l2_bytes", false, std::to_string(device.l2_bytes));
  if (device.kind == DeviceKind::kCpu)
    add("l3_bytes", false, device.l3_bytes > 0 ? std::to_string(device.l3_bytes) : "0 (no such cache)");
  add("cacheline_bytes", false, std::to_string(device.cacheline_bytes));
  add("memory_bandwidth_gbs", device.memory_bandwidth_gbs <= 0,
      or_assumed(device.memory_bandwidth_gbs, kAssumedBandwidthGbs));
  return out;
}

std::string to_string(const std::vector<AssumedAttribute>& attributes) {
  std::string out;
  for (const AssumedAttribute& a : attributes) out += (out.empty() ? "" : ", ") + a.name + " " + a.value;
  return out;
}

Device with_assumed_figures(Device device) {
  if (device.clock_ghz <= 0) {
    device.clock_ghz = kAssumedClockGhz;
    device.peak_f32_gflops =
        device.cores * device.clock_ghz * device.fma_per_cycle * 2 * (device.vector_bytes / 4.0);
  }
  if (device.memory_bandwidth_gbs <= 0) device.memory_bandwidth_gbs = kAssumedBandwidthGbs;
  return device;
}

namespace {

void assume(auto& value, auto assumed) {
  if (value <= 0) value = assumed;
}

}  // namespace

CoreRates with_assumed_rates(CoreRates rates) {
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
  return rates;
}

Device with_assumed_rates(Device device) {
  assume(device.clock_ghz, kAssumedClockGhz);
  assume(device.memory_bandwidth_gbs, kAssumedBytesPerCycle * device.clock_ghz);
  assume(device.fma_per_cycle, 1.0);
  assume(device.l1_bytes, int64_t{32} << 10);
  assume(device.l2_bytes, int64_t{256} << 10);
  device.rates = with_assumed_rates(device.rates);
  return device;
}

}  // namespace tensorsmith::target
