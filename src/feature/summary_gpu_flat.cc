// GPU programs without a tiled product: occupancy, waves, and the totals over all statements.
#include "feature/summary_parts.h"
#include "feature/summary_schema_gpu.h"

namespace tensorsmith::feature {

Rounds::Rounds(double blocks, double room, double warps, const target::GpuMachine& gpu)
    : of_core(std::ceil(blocks / gpu.cores)),
      resident(std::min(room, of_core)),
      count(std::ceil(of_core / room)),
      tail(of_core * gpu.cores / blocks),
      room_(room),
      full_(std::floor(of_core / room)),
      last_(of_core - full_ * room),
      warps_(warps),
      schedulers_(gpu.schedulers()) {}

namespace {

constexpr double kSharpness = 4;  // exponent of the norm that approximates the maximum

// Returns the blocks of all kernels of the program. The leaves of a kernel have its grid; kernels
// beyond the distinct grids are assumed to have the mean number of blocks.
double blocks_of(const LeafTotals& totals, const TraceSummary& trace) {
  double out = 0;
  for (const auto& [grid, threads] : totals.grids) out += grid;
  const double known = std::max<size_t>(totals.grids.size(), 1);
  return std::max(out * std::max(trace.kernels / known, 1.0), 1.0);
}

}  // namespace

void summarize_flat_gpu(const WorkloadAccess& access, const TraceSummary& trace, const LeafTotals& totals,
                        const target::Device& device, ProgramSummary& out) {
  const target::GpuMachine gpu(device);
  const double threads = std::max(totals.threads, 1.0), blocks = std::max(totals.grid, 1.0);
  const double warps = std::ceil(threads / gpu.warp), warp_threads = warps * gpu.warp;
  const double room = gpu.resident_blocks(warp_threads);
  const Rounds rounds(blocks, room, warps, gpu);
  const double compute = access.flops / gpu.flops_per_second;
  const double bytes = access.input_bytes + access.output_bytes;
  const double window = totals.most_runs * 4 / std::max(access.output_bytes, 1.0);
  // Seconds per instruction, for instructions counted over all threads; the idle lanes of a warp
  // are included.
  const double issue = warps / threads * rounds.tail * gpu.warp / 32 * gpu.seconds_per_cycle() /
                       (gpu.cores * gpu.schedulers());
  // A thread waits for its loads in batches of as many as are unrolled.
  const double loads = trace.cross_thread_reduction ? window / threads : window;
  const double batch = std::clamp(trace.unroll + 1, 1.0, std::min(16.0, std::max(loads, 1.0)));
  const double latency = rounds.count * std::ceil(loads / batch) * gpu.memory_latency();
  const double dram = bytes / gpu.bytes_per_second;
  // Little's law: the throughput is the data in flight (one word per thread) divided by the
  // latency.
  const double under_way = 4 * std::min(blocks * threads, gpu.cores * rounds.resident * threads);
  const double started = std::max(dram, bytes / under_way * gpu.memory_latency());
  const double dispatch = blocks_of(totals, trace) * gpu.block_start_cycles * gpu.seconds_per_cycle();
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
  seconds.set("reduce_threads", trace.cross_thread_reduction
                                    ? blocks * warps * rounds.tail * gpu.seconds_per_cycle() / gpu.cores
                                    : 0);
  seconds.set("strided", trace.cross_thread_reduction || access.structure != WorkloadStructure::kReduction
                             ? 0
                             : totals.bytes / gpu.bytes_per_second);
  seconds.set("l2", totals.bytes / gpu.l2_bytes_per_second());
  seconds.set("lines", totals.lines * 64 / gpu.bytes_per_second);

  add_resources(seconds, out);
  Quantities<kFlatGpuColumns> columns;
  columns.set("threads", threads);
  columns.set("blocks", blocks);
  columns.set("resident_blocks", rounds.resident);
  columns.set("occupancy", rounds.resident * warp_threads / gpu.core_threads);
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
