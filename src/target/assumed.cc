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
  const Figures assumed = with_assumed(Figures(device));
  add("cores", false, std::to_string(device.cores));
  add("clock_ghz", device.clock_ghz <= 0, text_of(assumed.clock_ghz));
  add("vector_bytes", false, std::to_string(device.vector_bytes));
  add("vector_registers", false, std::to_string(device.vector_registers));
  add("fma_per_cycle", false, text_of(device.fma_per_cycle));
  add("l1_bytes", false, std::to_string(device.l1_bytes));
  add("l2_bytes", false, std::to_string(device.l2_bytes));
  if (device.kind == DeviceKind::kCpu)
    add("l3_bytes", false, device.l3_bytes > 0 ? std::to_string(device.l3_bytes) : "0 (no such cache)");
  add("cacheline_bytes", false, std::to_string(device.cacheline_bytes));
  add("memory_bandwidth_gbs", device.memory_bandwidth_gbs <= 0, text_of(assumed.bandwidth_gbs));
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

Figures::Figures(const Device& device)
    : kind(device.kind),
      clock_ghz(device.clock_ghz),
      bandwidth_gbs(device.memory_bandwidth_gbs),
      peak_f32_gflops(device.peak_f32_gflops),
      fma_per_cycle(device.fma_per_cycle),
      l1_bytes(device.l1_bytes),
      l2_bytes(device.l2_bytes),
      rates(device.rates),
      cores(device.cores),
      vector_bytes(device.vector_bytes) {}

Figures with_assumed(Figures figures) {
  const bool is_cpu = figures.kind == DeviceKind::kCpu;
  if (is_cpu) {
    assume(figures.fma_per_cycle, 1.0);
    assume(figures.l1_bytes, int64_t{32} << 10);
    assume(figures.l2_bytes, int64_t{256} << 10);
    assume_rates(figures.rates);
  }
  if (figures.clock_ghz <= 0) figures.peak_f32_gflops = 0;
  assume(figures.clock_ghz, is_cpu ? 2.0 : 1.0);
  assume(figures.bandwidth_gbs, is_cpu ? 20.0 : 100.0);
  assume(figures.peak_f32_gflops,
         peak_gflops(figures.cores, figures.clock_ghz, figures.fma_per_cycle, figures.vector_bytes));
  return figures;
}

Device with_assumed_figures(Device device) {
  const Figures figures = with_assumed(Figures(device));
  device.clock_ghz = figures.clock_ghz;
  device.memory_bandwidth_gbs = figures.bandwidth_gbs;
  device.peak_f32_gflops = figures.peak_f32_gflops;
  device.fma_per_cycle = figures.fma_per_cycle;
  device.l1_bytes = figures.l1_bytes;
  device.l2_bytes = figures.l2_bytes;
  device.rates = figures.rates;
  return device;
}

}  // namespace tensorsmith::target
