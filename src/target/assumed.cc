#include "target/assumed.h"

#include <algorithm>

#include "target/attributes.h"

namespace tensorsmith::target {
namespace {

template <typename T>
std::string text_of(const T& value) {
  if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return number_text(value);
  } else {
    return "";
  }
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
  const bool cpu = device.kind() == DeviceKind::kCpu;
  const Device assumed = with_assumed_figures(device);
  for (const Attribute& a : attributes()) {
    if (!a.is(Attribute::kDecides) && !(cpu && a.is(Attribute::kDecidesOnCpus))) continue;
    const bool is_left_out = std::find(left_out.begin(), left_out.end(), a.name) != left_out.end();
    std::string before;
    visit_value(a, device, [&](const auto& value) { before = text_of(value); });
    visit_value(a, assumed, [&](const auto& value) {
      const std::string text = text_of(value);
      if (is_left_out || text != before)
        out.push_back({std::string(a.name), text == "0" ? "0 (" + std::string(a.source) + ")" : text});
    });
  }
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
    : kind(device.kind()),
      clock_ghz(device.clock_ghz),
      bandwidth_gbs(device.memory_bandwidth_gbs),
      peak_f32_gflops(device.peak_f32_gflops),
      fma_per_cycle(device.fma_per_cycle()),
      l1_bytes(device.l1_bytes),
      l2_bytes(device.l2_bytes),
      rates(kind == DeviceKind::kCpu ? device.cpu().rates : CoreRates()),
      cores(device.compute_units()),
      vector_bytes(device.register_bytes()) {}

Figures with_assumed(Figures figures) {
  const bool is_cpu = figures.kind == DeviceKind::kCpu;
  if (is_cpu) {
    assume(figures.fma_per_cycle, 1.0);
    assume(figures.l1_bytes, kUsualL1Bytes);
    assume(figures.l2_bytes, kUsualL2Bytes);
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
  device.l1_bytes = figures.l1_bytes;
  device.l2_bytes = figures.l2_bytes;
  if (device.kind() == DeviceKind::kCpu) {
    device.cpu().fma_per_cycle = figures.fma_per_cycle;
    device.cpu().rates = figures.rates;
  }
  return device;
}

}  // namespace tensorsmith::target
