// Figures that follow from a device's: compared with NVIDIA's and AMD's tables, and with what is said of unknown devices.
#include "target/machine.h"

#include <gtest/gtest.h>

#include "target/assumed.h"

namespace tensorsmith::target::machine_test {
namespace {

// The limits of resident blocks of the CUDA C++ programming guide, "Technical Specifications per Compute Capability".
TEST(Machine, ResidentBlocks) {
  const GpuMachine v100(find_device("v100").value());
  EXPECT_EQ(v100.resident_blocks(256), 8);               // 2048 threads
  EXPECT_EQ(v100.resident_blocks(32), 32);               // 32 blocks
  EXPECT_EQ(v100.resident_blocks(256, 0, 64), 4);        // 65536 registers
  EXPECT_EQ(v100.resident_blocks(256, 0, 65), 3);        // allocated in units of 8: 72 each
  EXPECT_EQ(v100.resident_blocks(64, 40 << 10, 32), 2);  // 96 KiB of shared memory
  EXPECT_EQ(v100.resident_blocks(1024, 96 << 10, 255), 1) << "a block that runs at all is resident";
  EXPECT_EQ(v100.register_limit(1024), 64);
  EXPECT_EQ(v100.register_limit(1000), 64) << "registers are allocated to whole warps";
  EXPECT_EQ(v100.register_limit(32), 255);
  const GpuMachine turing(find_device("rtx2080ti").value());
  EXPECT_EQ(turing.resident_blocks(256), 4) << "1024 threads";
  EXPECT_EQ(turing.shared_lanes(), 16);
  const GpuMachine mi50(find_device("mi50").value());
  EXPECT_TRUE(mi50.amd);
  EXPECT_EQ(mi50.warps(65), 2) << "wavefronts of 64";
  EXPECT_EQ(mi50.sector_bytes(), 64);
}

TEST(Machine, ComputeCapability) {
  EXPECT_EQ(compute_capability(find_device("a100").value()), 80);
  EXPECT_EQ(compute_capability(find_device("h100").value()), kHopper) << "sm_90a";
  EXPECT_EQ(compute_capability(find_device("mi50").value()), 0);
  EXPECT_EQ(compute_capability(find_device("epyc-9654").value()), 0);
}

// No default replaces a figure that the registry has.
TEST(Machine, KnownDevicesKeepTheirFigures) {
  for (const Device& device : registry()) {
    SCOPED_TRACE(device.name);
    const Machine machine = machine_of(device);
    ASSERT_EQ(machine.index() == 0, device.kind() == DeviceKind::kCpu);
    std::visit(
        [&](const auto& m) {
          EXPECT_DOUBLE_EQ(m.cores, device.compute_units());
          EXPECT_DOUBLE_EQ(m.clock_hz, 1e9 * device.clock_ghz);
          EXPECT_DOUBLE_EQ(m.bytes_per_second, 1e9 * device.memory_bandwidth_gbs);
          EXPECT_DOUBLE_EQ(m.flops_per_second, 1e9 * device.peak_f32_gflops);
          EXPECT_DOUBLE_EQ(m.l2_bytes, static_cast<double>(device.l2_bytes));
        },
        machine);
  }
}

TEST(Machine, APeakThatAFileLeavesOutFollows) {
  const auto device = parse_device(
      R"({"name": "d", "arch": "x86-64", "cores": 4, "clock_ghz": 2.5, "fma_per_cycle": 2, "vector_bytes": 32})",
      "d");
  ASSERT_TRUE(device.ok()) << device.error().message();
  EXPECT_DOUBLE_EQ(device->peak_f32_gflops, 4 * 2.5 * 2 * 2 * 8);
}

TEST(Machine, UnknownFiguresAreAssumed) {
  Device cpu;
  cpu.figures = CpuFigures{.cores = 4, .vector_bytes = 32, .fma_per_cycle = 2};
  const CpuMachine assumed(cpu);
  EXPECT_EQ(assumed.clock_hz, 2e9);
  EXPECT_EQ(assumed.bytes_per_second, 20e9);
  EXPECT_EQ(assumed.flops_per_second, 4 * 2e9 * 2 * 2 * 8);
  EXPECT_GT(assumed.rates.loads_per_cycle, 1);
  EXPECT_EQ(assumed.l3_bytes, 0);
  EXPECT_EQ(assumed.l3_bytes_per_core(), assumed.l2_bytes);
  Device gpu;
  gpu.figures = GpuFigures{.lanes = 64};
  const GpuMachine small(gpu);
  EXPECT_EQ(small.warp, 32);
  EXPECT_EQ(small.clock_hz, 1e9);
  EXPECT_EQ(small.flops_per_second, 1e9 * 2 * 64);
  EXPECT_LE(small.max_threads, 256);
  EXPECT_EQ(small.block_start_cycles, 3);
  gpu.gpu().block_start_cycles = 1.5;
  EXPECT_EQ(GpuMachine(gpu).block_start_cycles, 1.5);
  EXPECT_LE(small.shared_bytes, 32 << 10);
}

// Without FMA a product is two instructions, without AVX a factor is copied first and elements are broadcast by another.
TEST(Machine, InstructionsOfAProduct) {
  const Device native = find_device("xeon-8358:threads=1").value();
  const auto machine = [&](const char* isa) { return CpuMachine(with_isa(native, isa).value()); };
  EXPECT_EQ(machine("avx2").product_instructions, 1);
  EXPECT_EQ(machine("sse4.2").product_instructions, 3);
  EXPECT_EQ(machine("sse4.2").broadcast_instructions, 1);
  EXPECT_EQ(machine("avx2").broadcast_instructions, 0);
  EXPECT_GE(machine("sse4.2").products_per_cycle, machine("sse4.2").fma_per_cycle);
  EXPECT_EQ(machine("avx2").lanes(), 8);
}

}  // namespace
}  // namespace tensorsmith::target::machine_test
