#include "target/attributes.h"

#include <charconv>
#include <cmath>

#include "target/assumed.h"
#include "target/machine.h"

namespace tensorsmith::target {
namespace {

using enum Attribute::Flags;
using Place = Attribute::Place;

template <auto Member>
Place common(Device& d) {
  return &(d.*Member);
}
template <auto Member>
Place of_cpu(Device& d) {
  return d.kind() == DeviceKind::kCpu ? Place(&(d.cpu().*Member)) : Place();
}
template <auto Member>
Place rate(Device& d) {
  return d.kind() == DeviceKind::kCpu ? Place(&(d.cpu().rates.*Member)) : Place();
}
template <auto Member>
Place of_gpu(Device& d) {
  return d.kind() == DeviceKind::kGpu ? Place(&(d.gpu().*Member)) : Place();
}
template <auto Cpu, auto Gpu>
Place either(Device& d) {
  return d.kind() == DeviceKind::kCpu ? of_cpu<Cpu>(d) : of_gpu<Gpu>(d);
}

// Defaults without another source are round figures of these.
constexpr std::string_view kTypicalCore = "out-of-order core", kSmallGpu = "small GPU";

constexpr Attribute kAttributes[] = {
    {"name", "", "name for `--device`", kRequired, "", common<&Device::name>},
    {"description", "", "text for people", kNone, "", common<&Device::description>},
    {"kind", "", "`cpu` or `gpu`", kInKey, "`cpu`"},
    {"arch", "", "`x86-64`, `aarch64`, `nvptx`, `amdgcn` or `opencl`", kRequired | kInKey, "",
     common<&Device::arch>},
    {"cpu", "", "LLVM's name of the processor, such as `znver4` or `sm_80`", kInKey, "generic code",
     common<&Device::processor>},
    {"features", "", "LLVM features with their sign, such as `\"+avx2\"`; OpenCL: `+fp64`, `+fp16`", kInKey,
     "", common<&Device::features>},
    {"cores", "", "CPU cores (not hardware threads), or multiprocessors", kRequired | kInKey | kDecides, "",
     either<&CpuFigures::cores, &GpuFigures::multiprocessors>},
    {"clock_ghz", "GHz",
     "sustained clock: base clock of known CPUs (`local`: measured), boost clock of most GPUs",
     kRequired | kInKey | kDecides, "", common<&Device::clock_ghz>},
    {"base_clock_ghz", "GHz", "the vendor's lowest clock", kNone, "", common<&Device::base_clock_ghz>},
    {"boost_clock_ghz", "GHz", "the vendor's highest clock", kNone, "", common<&Device::boost_clock_ghz>},
    {"vector_bytes", "bytes", "widest vector register; GPUs: register of a thread", kInKey | kDecides,
     kTypicalCore, either<&CpuFigures::vector_bytes, &GpuFigures::lane_bytes>},
    {"vector_registers", "", "vector registers; GPUs: 32-bit registers of a thread", kInKey | kDecides,
     kTypicalCore, either<&CpuFigures::vector_registers, &GpuFigures::registers_per_thread>},
    {"fma_per_cycle", "1/cycle", "vector multiply-adds of a core; GPUs: fp32 lanes of a multiprocessor",
     kInKey | kDecides, kTypicalCore, either<&CpuFigures::fma_per_cycle, &GpuFigures::lanes>},
    {"l1_bytes", "bytes", "L1 data cache of a core (GPUs: with shared memory, if both are one)",
     kInKey | kDecides, kTypicalCore, common<&Device::l1_bytes>},
    {"l2_bytes", "bytes", "L2 of a core (GPUs: of the device)", kInKey | kDecides, kTypicalCore,
     common<&Device::l2_bytes>},
    {"l3_bytes", "bytes", "L3 of all cores", kInKey | kDecidesOnCpus, "no such cache",
     common<&Device::l3_bytes>},
    {"cacheline_bytes", "bytes", "size of a cache line", kInKey | kDecides, kTypicalCore,
     common<&Device::cacheline_bytes>},
    {"loads_per_cycle", "1/cycle", "vector loads", kNone, kTypicalCore, rate<&CoreRates::loads_per_cycle>},
    {"issue_per_cycle", "1/cycle", "instructions of all kinds", kNone, kTypicalCore,
     rate<&CoreRates::issue_per_cycle>},
    {"fma_latency", "cycles", "latency of a vector FMA", kNone, kTypicalCore, rate<&CoreRates::fma_latency>},
    {"dot2_latency", "cycles", "latency of a bf16 dot product", kNone, kTypicalCore,
     rate<&CoreRates::dot2_latency>},
    {"reorder_buffer", "instructions", "capacity of the reorder buffer", kNone, kTypicalCore,
     rate<&CoreRates::reorder_buffer>},
    {"l2_bytes_per_cycle", "bytes/cycle", "transfer rate from L2 to L1", kNone, kTypicalCore,
     rate<&CoreRates::l2_bytes_per_cycle>},
    {"l3_bytes_per_cycle", "bytes/cycle", "transfer rate from L3 to L2", kNone, kTypicalCore,
     rate<&CoreRates::l3_bytes_per_cycle>},
    {"l2_ways", "", "associativity of L2", kNone, kTypicalCore, rate<&CoreRates::l2_ways>},
    {"tlb_bytes", "bytes", "memory that the second-level TLB covers", kNone, kTypicalCore,
     rate<&CoreRates::tlb_bytes>},
    {"parallel_overhead_us", "10⁻⁶ s", "time to start and join a parallel loop", kNone, kTypicalCore,
     rate<&CoreRates::parallel_overhead_us>},
    {"memory_bandwidth_gbs", "10⁹ bytes/s", "theoretical bandwidth (`local`: measured)", kInKey | kDecides,
     kSmallGpu, common<&Device::memory_bandwidth_gbs>},
    {"memory_gb", "2³⁰ bytes", "size of the memory", kNone, "", common<&Device::memory_gb>},
    {"peak_f32_gflops", "10⁹/s", "peak of the vector units of all cores", kInKey,
     "follows from the other attributes", common<&Device::peak_f32_gflops>},
    {"launch_overhead_us", "10⁻⁶ s", "time between dependent kernels", kNone, kSmallGpu,
     common<&Device::launch_overhead_us>},
    {"power_watts", "W", "thermal design power", kInKeyIfKnown, "", common<&Device::power_watts>},
    {"warp_size", "threads", "threads of a warp", kRequired | kInKey, "", of_gpu<&GpuFigures::warp_size>},
    {"max_threads_per_block", "threads", "most threads of a block", kRequired | kInKey, "",
     of_gpu<&GpuFigures::max_threads_per_block>},
    {"shared_memory_per_block", "bytes", "most shared memory of a block", kInKey, kSmallGpu,
     of_gpu<&GpuFigures::shared_memory_per_block>},
    {"registers_per_block", "", "most 32-bit registers of a block", kInKey, kSmallGpu,
     of_gpu<&GpuFigures::registers_per_block>},
    {"max_vthread_extent", "", "most virtual threads of an axis in a search", kInKey, kSmallGpu,
     of_gpu<&GpuFigures::max_vthread_extent>},
    {"max_threads_per_core", "threads", "most threads of a multiprocessor", kRequired, "",
     of_gpu<&GpuFigures::max_threads_per_core>},
    {"max_blocks_per_core", "blocks", "most blocks of a multiprocessor", kNone,
     "`max_threads_per_core` / `warp_size`", of_gpu<&GpuFigures::max_blocks_per_core>},
    {"shared_memory_per_core", "bytes", "shared memory of a multiprocessor", kNone,
     "required with `shared_memory_per_block`", of_gpu<&GpuFigures::shared_memory_per_core>},
    {"registers_per_core", "", "32-bit registers of a multiprocessor", kNone,
     "required with `registers_per_block`", of_gpu<&GpuFigures::registers_per_core>},
    {"block_start_cycles", "cycles", "time between the starts of two blocks of a kernel", kNone,
     "measured: A100 1.0, V100 2.4, K80 3.0, MI50 4.0", of_gpu<&GpuFigures::block_start_cycles>},
    {"sources", "", "sources of the figures", kNone, "", common<&Device::sources>},
};

// Returns a device without known attributes, with the defaults that the library calculates with.
Device with_defaults(DeviceKind kind) {
  Device device;
  if (kind == DeviceKind::kGpu) {
    device.figures = GpuFigures{};
    const GpuMachine machine(device);
    GpuFigures& gpu = device.gpu();
    gpu.shared_memory_per_block = machine.shared_bytes;
    gpu.registers_per_block = machine.registers_per_block;
    gpu.max_vthread_extent = machine.max_vthreads;
    gpu.block_start_cycles = machine.block_start_cycles;
    device.launch_overhead_us = 1e6 * machine.launch_seconds;
  }
  device = with_assumed_figures(std::move(device));
  device.peak_f32_gflops = 0;
  return device;
}

std::string text_with_unit(double value, std::string_view unit) {
  if (unit != "bytes" || value < 1 << 10) return number_text(value);
  if (value < 1 << 20) return number_text(value / (1 << 10)) + " KiB";
  return number_text(value / (1 << 20)) + " MiB";
}

// Returns the default for devices of this kind; empty if there is none.
std::string default_value(const Attribute& attribute, DeviceKind kind) {
  const Device device = with_defaults(kind);
  std::string out;
  visit_value(attribute, device, [&]<typename T>(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      if (value != 0) out = text_with_unit(value, attribute.unit);
    }
  });
  return out;
}

std::string default_text(const Attribute& attribute) {
  if (attribute.is(kRequired)) return "required";
  const std::string cpu = default_value(attribute, DeviceKind::kCpu);
  const std::string gpu = default_value(attribute, DeviceKind::kGpu);
  std::string out = cpu;
  if (!gpu.empty() && gpu != cpu) {
    if (attribute.applies_to(DeviceKind::kCpu)) out += cpu.empty() ? "GPUs: " : ", GPUs: ";
    out += gpu;
  }
  if (out.empty()) return std::string(attribute.source);
  const bool is_typical = attribute.source == kTypicalCore || attribute.source == kSmallGpu;
  return is_typical ? out : out + " (" + std::string(attribute.source) + ")";
}

}  // namespace

bool Attribute::applies_to(DeviceKind kind) const {
  if (place == nullptr) return true;
  Device device;
  if (kind == DeviceKind::kGpu) device.figures = GpuFigures{};
  return place(device).index() != 0;
}

std::span<const Attribute> attributes() { return kAttributes; }

std::string number_text(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc() ? std::string(buffer, end) : std::string();
}

std::string attribute_table() {
  std::string out = "|attribute|unit|of|default|meaning|\n|---|---|---|---|---|\n";
  for (const Attribute& a : kAttributes) {
    const bool cpu = a.applies_to(DeviceKind::kCpu), gpu = a.applies_to(DeviceKind::kGpu);
    const std::string kinds = cpu && gpu ? "" : cpu ? "CPUs" : "GPUs";
    out += "|`" + std::string(a.name) + "`|" + std::string(a.unit) + "|" + kinds + "|" + default_text(a) +
           "|" + std::string(a.meaning) + "|\n";
  }
  return out;
}

}  // namespace tensorsmith::target
