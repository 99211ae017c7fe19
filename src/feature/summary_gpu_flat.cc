// GPU programs without a tiled product: occupancy, waves, and the totals over all statements.
#include "feature/summary_parts.h"
#include "feature/summary_schema_gpu.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::feature {

// Rates and latencies of a multiprocessor by generation. They are round values close to those of
// microbenchmarks (shared memory of a Turing takes 23 cycles) and not looked up for each device;
// fitted factors absorb their errors. Kepler's four schedulers start a second instruction of a warp
// only if it does not depend on the first one, so they sustain one multiply-add of 32 lanes each.
// Turing has half as many load and store units as Volta.
GpuFigures::GpuFigures(const target::Device& device) {
  const auto or_else = [](double value, double usual) { return value > 0 ? value : usual; };
  cores = or_else(device.cores, 1);
  clock_hz = or_else(device.clock_ghz, 1) * 1e9;
  bytes_per_second = or_else(device.memory_bandwidth_gbs, 100) * 1e9;
  flops_per_second = or_else(device.peak_f32_gflops, 1000) * 1e9;
  l2_bytes = or_else(device.l2_bytes, 1 << 20);
  shared_bytes = or_else(device.shared_memory_per_core, 48 << 10);
  registers = or_else(device.registers_per_core, 65536);
  threads = or_else(device.max_threads_per_core, 2048);
  blocks = or_else(device.max_blocks_per_core, 40);
  warp = std::clamp(device.warp_size, 1, kMaxLanes);
  registers_per_thread = or_else(device.vector_registers, 255);
  registers_per_block = or_else(device.registers_per_block, 65536);
  threads_per_block = or_else(device.max_threads_per_block, 1024);
  const bool amd = device.arch == "amdgcn";
  compiles_for_largest_block = amd;
  const int capability = sched::compute_capability(device);
  constexpr int kMaxwell = 50;
  const bool kepler = capability > 0 && capability < kMaxwell;
  sector_bytes = amd ? 64 : 32;
  schedulers = 4;
  fma_lanes = std::min(or_else(device.fma_per_cycle, 64), kepler ? schedulers * 32 : 1e9);
  shared_lanes = capability == sched::kTuring ? 16 : 32;
  l2_per_second = 32 * cores * clock_hz;
  shared_latency = (amd ? 64 : kepler ? 40 : 24) * cycle();
  memory_latency = (amd ? 800 : 440) * cycle();
}

Rounds::Rounds(double blocks, double room, double warps, const GpuFigures& gpu)
    : of_core(std::ceil(blocks / gpu.cores)),
      resident(std::min(room, of_core)),
      count(std::ceil(of_core / room)),
      tail(of_core * gpu.cores / blocks),
      room_(room),
      full_(std::floor(of_core / room)),
      last_(of_core - full_ * room),
      warps_(warps),
      schedulers_(gpu.schedulers) {}

namespace {

constexpr double kSharpness = 4;  // exponent of the norm that approximates the maximum

// Returns the blocks of all kernels of the program. The leaves of a kernel have its grid; kernels
// beyond the distinct grids are assumed to have the mean number of blocks.
double blocks_of(const LeafTotals& totals, const TraceSummary& trace) {
  double out = 0;
  for (const auto& [grid, threads] : totals.grids) out += grid;
  const auto known = static_cast<double>(std::max<size_t>(totals.grids.size(), 1));
  return std::max(out * std::max(trace.kernels / known, 1.0), 1.0);
}

}  // namespace

void summarize_flat_gpu(const WorkloadAccess& access, const TraceSummary& trace, const LeafTotals& totals,
                        const target::Device& device, ProgramSummary& out) {
  const GpuFigures gpu(device);
  const double threads = std::max(totals.threads, 1.0), blocks = std::max(totals.grid, 1.0);
  const double warps = std::ceil(threads / gpu.warp), warp_threads = warps * gpu.warp;
  const double room = std::max(1.0, std::min(gpu.blocks, std::floor(gpu.threads / warp_threads)));
  const Rounds rounds(blocks, room, warps, gpu);
  const double compute = access.flops / gpu.flops_per_second;
  const double bytes = access.input_bytes + access.output_bytes;
  const double window = totals.most_runs * 4 / std::max(access.output_bytes, 1.0);
  // Seconds per instruction, for instructions counted over all threads; the idle lanes of a warp
  // are included.
  const double issue =
      warps / threads * rounds.tail * gpu.warp / 32 * gpu.cycle() / (gpu.cores * gpu.schedulers);
  // A thread waits for its loads in batches of as many as are unrolled.
  const double loads = trace.cross_thread_reduction ? window / threads : window;
  const double batch = std::clamp(trace.unroll + 1, 1.0, std::min(16.0, std::max(loads, 1.0)));
  const double latency = rounds.count * std::ceil(loads / batch) * gpu.memory_latency;
  const double dram = bytes / gpu.bytes_per_second;
  // Little's law: the throughput is the data in flight (one word per thread) divided by the
  // latency.
  const double under_way = 4 * std::min(blocks * threads, gpu.cores * rounds.resident * threads);
  const double started = std::max(dram, bytes / under_way * gpu.memory_latency);
  const double dispatch = blocks_of(totals, trace) * kBlockStartCycles * gpu.cycle();
  const double statements = totals.runs * issue;
  double bound = 0;
  for (const double seconds : {dispatch, dram, started, latency, 2 * statements})
    bound += std::pow(seconds, kSharpness);
  out.roofline_seconds = std::max({compute, dram, 1e-7});

  Quantities<kFlatGpuResources> seconds;
  seconds.set("bound", std::pow(bound, 1 / kSharpness));
  seconds.set("dispatch", dispatch);
  seconds.set("dram", dram);
  seconds.set("guards", (totals.int_compares + totals.selects) * issue);
  seconds.set("launch", 5e-6 * std::max(trace.kernels, 1));
  seconds.set("reduce_threads",
              trace.cross_thread_reduction ? blocks * warps * rounds.tail * gpu.cycle() / gpu.cores : 0);
  seconds.set("strided", trace.cross_thread_reduction || access.structure != WorkloadStructure::kReduction
                             ? 0
                             : totals.bytes / gpu.bytes_per_second);
  seconds.set("l2", totals.bytes / gpu.l2_per_second);
  seconds.set("lines", totals.lines * 64 / gpu.bytes_per_second);

  add_resources(seconds, out);
  Quantities<kFlatGpuColumns> columns;
  columns.set("threads", threads);
  columns.set("blocks", blocks);
  columns.set("resident_blocks", rounds.resident);
  columns.set("occupancy", rounds.resident * warp_threads / gpu.threads);
  columns.set("rounds", rounds.count);
  columns.set("tail", rounds.tail);
  columns.set("warp_use", threads / warp_threads);
  columns.set("warps", warps);
  columns.set("kernels", trace.kernels);
  columns.set("inlined", trace.inlined);
  columns.set("reduce_threads", trace.cross_thread_reduction ? trace.flat_threads[0] : 0);
  columns.set("unroll", trace.unroll + 1);
  columns.set("leaves", totals.leaves);
  columns.set("threads_second", trace.flat_threads[1] + 1);
  columns.set("window", window);
  columns.set("inputs_per_output", access.input_bytes / std::max(access.output_bytes, 1.0));
  columns.set("threads_total", blocks * threads);
  columns.set("integer", totals.int_ops / std::max(totals.runs, 1.0));
  columns.set("divisions", totals.int_divisions / std::max(totals.runs, 1.0));
  columns.set("floats", totals.float_ops / std::max(totals.runs, 1.0));
  add_columns(columns, out);
}

}  // namespace tensorsmith::feature
