// GPU programs without a tiled product: occupancy, waves, what all statements do together.
#include "feature/summary_parts.h"
#include "feature/summary_schema_gpu.h"

namespace tensorsmith::feature {

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
  compiles_for_largest_block = device.arch == "amdgcn";
}

void summarize_flat_gpu(const WorkloadAccess& access, const TraceSummary& trace, const LeafTotals& totals,
                        const target::Device& device, ProgramSummary& out) {
  const GpuFigures gpu(device);
  const double threads = std::max(totals.threads, 1.0), blocks = std::max(totals.grid, 1.0);
  const double warps = std::ceil(threads / gpu.warp), warp_threads = warps * gpu.warp;
  const double resident = std::max(1.0, std::min(gpu.blocks, std::floor(gpu.threads / warp_threads)));
  const double waves = blocks / (resident * gpu.cores), tail = std::ceil(waves) / waves;
  const double cycle = 1 / (gpu.cores * gpu.clock_hz);
  const double compute = access.flops / gpu.flops_per_second;
  const double bytes = access.input_bytes + access.output_bytes;
  const double window = totals.most_runs * 4 / std::max(access.output_bytes, 1.0);
  // Instructions of a warp that some count of all threads together makes; idle lanes run along.
  const double per_warp = warps / threads * cycle * tail;
  out.roofline_seconds = std::max({compute, bytes / gpu.bytes_per_second, 1e-7});

  Quantities<kFlatGpuResources> seconds;
  seconds.set("compute", compute);
  seconds.set("dram", bytes / gpu.bytes_per_second);
  seconds.set("dram_out", access.output_bytes / gpu.bytes_per_second);
  seconds.set("dram_in", access.input_bytes / gpu.bytes_per_second);
  seconds.set("threads", blocks * warps * cycle * tail);
  seconds.set("blocks", blocks / gpu.cores * 1e-7);
  seconds.set("statements", totals.runs * per_warp);
  seconds.set("integer", totals.int_ops * per_warp);
  seconds.set("divisions", totals.int_divisions * per_warp);
  seconds.set("guards", (totals.int_compares + totals.selects) * per_warp);
  seconds.set("floats", totals.float_ops * per_warp);
  seconds.set("launch", 5e-6);
  seconds.set("launches", 5e-6 * trace.kernels);
  seconds.set("touched", totals.bytes / gpu.bytes_per_second);
  seconds.set("waves", std::ceil(waves) * 1e-6);
  seconds.set("waves_window", std::ceil(waves) * 1e-6 * window);
  seconds.set("reduce_threads", trace.cross_thread_reduction ? blocks * warps * cycle * tail : 0);
  seconds.set("strided", trace.cross_thread_reduction ? 0 : totals.bytes / gpu.bytes_per_second);
  seconds.set("lines", totals.lines * 64 / gpu.bytes_per_second);

  add_resources(seconds, out);
  Quantities<kFlatGpuColumns> columns;
  columns.set("threads", threads);
  columns.set("blocks", blocks);
  columns.set("resident_blocks", resident);
  columns.set("occupancy", resident * warp_threads / gpu.threads);
  columns.set("waves", waves);
  columns.set("tail", tail);
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
  add_columns(columns, out);
}

}  // namespace tensorsmith::feature
