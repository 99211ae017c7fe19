// GPU programs: occupancy, waves, memory transactions, bank conflicts, register blocking.
#include <array>

#include "feature/summary_parts.h"

namespace tensorsmith::feature {

namespace {

constexpr int kMaxLanes = 64;
constexpr double kSectorElements = 8;  // 32 bytes: what memory and L2 hand over at least
constexpr double kLineElements = 32;   // 128 bytes
constexpr int kBanks = 32;

double product_of(std::span<const double> values) {
  double out = 1;
  for (const double v : values) out *= v;
  return out;
}

int distinct(std::span<const int64_t> addresses, int64_t unit) {
  std::array<int64_t, kMaxLanes> sorted;
  const size_t n = addresses.size();
  for (size_t i = 0; i < n; ++i) sorted[i] = addresses[i] / unit;
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(n));
  return static_cast<int>(std::unique(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(n)) -
                          sorted.begin());
}

// Rounds that the banks of shared memory need: different addresses in a bank wait for each other.
int bank_rounds(std::span<const int64_t> addresses) {
  std::array<int64_t, kMaxLanes> sorted;
  const size_t n = std::min<size_t>(addresses.size(), kBanks);
  std::copy_n(addresses.begin(), n, sorted.begin());
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(n));
  std::array<int, kBanks> count{};
  for (size_t i = 0; i < n; ++i) {
    if (i == 0 || sorted[i] != sorted[i - 1]) ++count[static_cast<size_t>(sorted[i] % kBanks)];
  }
  return *std::max_element(count.begin(), count.end());
}

// Quantities of the tiling by axis.
struct Levels {
  std::vector<double> blocks, vthreads, threads, inner, inner2, block_tile, thread_tile;
  std::vector<double> reduce_tile, reduce2;  // reduce_tile: both inner levels
  double reduce_steps = 1;

  explicit Levels(const Tiles& tiles) {
    for (const auto& s : tiles.spatial) {
      blocks.push_back(s[0]);
      vthreads.push_back(s[1]);
      threads.push_back(s[2]);
      inner.push_back(s[3] * s[4]);
      inner2.push_back(s[4]);
      block_tile.push_back(s[1] * s[2] * s[3] * s[4]);
      thread_tile.push_back(s[1] * s[3] * s[4]);
    }
    for (const auto& r : tiles.reduce) {
      reduce_steps *= r[0];
      reduce_tile.push_back(r[1] * r[2]);
      reduce2.push_back(r[2]);
    }
  }
};

// Of the axes that move along a dimension of the read.
double product_along(const WorkloadAccess::Read& read, std::span<const double> sizes) {
  double out = 1;
  for (size_t a = 0; a < sizes.size(); ++a) {
    bool moves = false;
    for (const auto& dim : read.dims) {
      for (const auto& term : dim) moves = moves || (!term.reduce && term.axis == static_cast<int>(a));
    }
    if (moves) out *= sizes[a];
  }
  return out;
}

}  // namespace

GpuFigures::GpuFigures(const target::Device& device) {
  const auto or_else = [](double value, double usual) { return value > 0 ? value : usual; };
  cores = or_else(device.cores, 1);
  clock_hz = or_else(device.clock_ghz, 1) * 1e9;
  bytes_per_second = or_else(device.memory_bandwidth_gbs, 100) * 1e9;
  flops_per_second = or_else(device.peak_f32_gflops, 1000) * 1e9;
  l2_bytes = or_else(static_cast<double>(device.l2_bytes), 1 << 20);
  shared_bytes = or_else(static_cast<double>(device.shared_memory_per_core), 48 << 10);
  registers = or_else(static_cast<double>(device.registers_per_core), 65536);
  threads = or_else(device.max_threads_per_core, 2048);
  blocks = or_else(device.max_blocks_per_core, 40);
  warp = std::clamp(device.warp_size, 1, kMaxLanes);
  registers_per_thread = or_else(device.vector_registers, 255);
  registers_per_block = or_else(static_cast<double>(device.registers_per_block), 65536);
  threads_per_block = or_else(device.max_threads_per_block, 1024);
  compiles_for_largest_block = device.arch == "amdgcn";
}

void summarize_tiled_gpu(const WorkloadAccess& access, const Tiles& tiles, const TraceSummary& trace,
                         const LeafTotals& totals, const target::Device& device, SummarySink& out,
                         double& roofline_seconds) {
  const GpuFigures gpu(device);
  const Levels t(tiles);
  const size_t axes = t.blocks.size();
  const double blocks = product_of(t.blocks), threads = product_of(t.threads);
  const double vthreads = product_of(t.vthreads), inner = product_of(t.inner);
  const double inner2 = product_of(t.inner2);
  const double accumulators = vthreads * inner;
  const double reduce_tile = product_of(t.reduce_tile), reduce2 = product_of(t.reduce2);
  const double warps = std::ceil(threads / gpu.warp), warp_threads = warps * gpu.warp;
  const int lanes = gpu.warp;

  // The tiles of both operands in shared memory.
  std::array<std::vector<double>, 2> extents;
  std::array<double, 2> shared{}, tile{}, tile2{}, full{};
  double input_bytes = 0;
  for (size_t q = 0; q < 2; ++q) {
    const auto& read = access.reads[q];
    touched_extents(read, t.block_tile, t.reduce_tile, extents[q]);
    shared[q] = product_of(extents[q]);
    full[q] = product_along(read, t.thread_tile);
    tile[q] = product_along(read, t.inner);
    tile2[q] = product_along(read, t.inner2);
    double elements = 1;
    for (const int64_t n : read.shape) elements *= static_cast<double>(n);
    input_bytes += 4 * elements;
  }
  const double shared_bytes = 4 * (shared[0] + shared[1]);
  double output_bytes = 4;
  for (const int64_t n : access.spatial) output_bytes *= static_cast<double>(n);

  // Registers that the compiler may give a thread: what is left to each thread of the block on NVIDIA (the
  // kernel is compiled for its block size), of the largest block on AMD (TVM compiles kernels for that).
  const double sharing = gpu.compiles_for_largest_block ? gpu.threads_per_block : warp_threads;
  const double register_limit =
      std::min(gpu.registers_per_thread, std::floor(gpu.registers_per_block / sharing / 8) * 8);
  // Occupancy: registers are the accumulators, one operand's values and addresses.
  const double registers = std::min(accumulators + std::min(tile[0], 64.0) + 24, register_limit);
  const double resident =
      std::max(1.0, std::min({gpu.blocks, std::floor(gpu.threads / warp_threads),
                              std::floor(gpu.shared_bytes / std::max(shared_bytes, 1.0)),
                              std::floor(gpu.registers / (std::ceil(registers / 8) * 8 * warp_threads))}));
  const double concurrent = resident * gpu.cores, waves = blocks / concurrent;
  const double tail = std::ceil(waves) / waves;
  const double occupancy = resident * warp_threads / gpu.threads;

  // What the blocks of a wave read together; blocks are numbered with the last axis fastest.
  std::vector<double> wave_tile(axes);
  double left = std::min(concurrent, blocks);
  for (size_t a = axes; a-- > 0;) {
    const double together = std::min(t.blocks[a], std::max(1.0, std::ceil(left)));
    left /= t.blocks[a];
    wave_tile[a] = std::min(t.block_tile[a] * together, static_cast<double>(access.spatial[a]));
  }
  const std::vector<double> whole_reduce(access.reduce.begin(), access.reduce.end());
  double wave_bytes = 0;
  for (const auto& read : access.reads) {
    double elements = 1;
    for (const int64_t n : read.shape) elements *= static_cast<double>(n);
    wave_bytes += 4 * std::min(touched_elements(read, wave_tile, whole_reduce), elements);
  }

  // Lanes of the first warp as coordinates of the tile; the last axis is fastest.
  std::array<std::array<double, kMaxAxes>, kMaxLanes> lane{};
  for (int l = 0; l < lanes; ++l) {
    auto rest = static_cast<int64_t>(l);
    for (size_t a = axes; a-- > 0;) {
      const auto n = static_cast<int64_t>(t.threads[a]);
      lane[static_cast<size_t>(l)][a] = static_cast<double>(rest % n) * t.inner[a];
      rest /= n;
    }
  }
  std::array<int64_t, kMaxLanes> addresses{};
  const std::span<const int64_t> used(addresses.data(), static_cast<size_t>(lanes));

  // Fetches from memory into shared memory and reads of shared memory.
  double fetched_bytes = 0, fetch_instructions = 0, fetch_sectors = 0;
  double reads_full = 0, reads_tile = 0, reads_conflicts = 0;
  std::array<double, 2> sectors{}, lines{}, fills{}, fill_use{}, rounds{}, runs{};
  for (size_t q = 0; q < 2; ++q) {
    const auto& read = access.reads[q];
    const auto& extent = extents[q];
    const double vector = std::max(trace.fetch_vector[q], 1.0);
    for (int l = 0; l < lanes; ++l) {
      auto rest = static_cast<int64_t>(std::min(l * vector, shared[q] - 1));
      int64_t address = 0, stride = 1;
      for (size_t d = extent.size(); d-- > 0;) {
        const auto n = static_cast<int64_t>(extent[d]);
        address += (rest % n) * stride;
        rest /= n;
        stride *= read.shape[d];
      }
      addresses[static_cast<size_t>(l)] = address;
    }
    const double active = std::min({threads, static_cast<double>(lanes), std::ceil(shared[q] / vector)});
    const double sector_count = distinct(used, static_cast<int64_t>(kSectorElements));
    sectors[q] = sector_count / active;
    lines[q] = distinct(used, static_cast<int64_t>(kLineElements)) / active;
    const double rounds_of_fetch = std::ceil(shared[q] / vector / threads);
    fills[q] = rounds_of_fetch * vector;
    fill_use[q] = shared[q] / (fills[q] * threads);
    runs[q] = 4 * contiguous_elements(extent, read.shape);
    const double instructions = blocks * t.reduce_steps * warps * fills[q];
    fetch_instructions += instructions;
    fetch_sectors += instructions * sector_count;
    fetched_bytes += blocks * t.reduce_steps * shared[q] * 4;

    for (int l = 0; l < lanes; ++l) {
      double address = 0, stride = 1;
      for (size_t d = extent.size(); d-- > 0;) {
        for (const auto& term : read.dims[d]) {
          if (!term.reduce)
            address += lane[static_cast<size_t>(l)][static_cast<size_t>(term.axis)] *
                       static_cast<double>(term.coefficient) * stride;
        }
        stride *= extent[d];
      }
      addresses[static_cast<size_t>(l)] = static_cast<int64_t>(std::abs(address));
    }
    rounds[q] = bank_rounds(used);
    reads_full += full[q] / accumulators;
    reads_tile += tile[q] / inner;
    reads_conflicts += tile[q] / inner * rounds[q];
  }
  // Different values that a thread reads, with what slides over a window counted once: of its tile, of the
  // innermost levels, and of all virtual threads together.
  double distinct_tile = 0, distinct_thread = 0;
  for (const auto& read : access.reads) {
    distinct_tile += touched_elements(read, t.inner, t.reduce_tile);
    distinct_thread += touched_elements(read, t.thread_tile, t.reduce_tile);
  }
  // Stores of the output by the lanes.
  for (int l = 0; l < lanes; ++l) {
    double address = 0, stride = 1;
    for (size_t a = axes; a-- > 0;) {
      address += lane[static_cast<size_t>(l)][a] * stride;
      stride *= static_cast<double>(access.spatial[a]);
    }
    addresses[static_cast<size_t>(l)] = static_cast<int64_t>(address);
  }
  const double store_sectors = distinct(used, static_cast<int64_t>(kSectorElements));
  const double store_lanes = std::min(threads, static_cast<double>(lanes));

  // Loops around the multiply-add, innermost first, inside the outermost reduce level.
  std::vector<UnrollLoop> loops;
  for (size_t level : {4UL, 2UL, 3UL, 1UL}) {
    const bool reduce = level < 3;
    if (reduce) {
      for (size_t a = tiles.reduce.size(); a-- > 0;) loops.push_back({tiles.reduce[a][level], true});
    } else {
      for (size_t a = axes; a-- > 0;) loops.push_back({tiles.spatial[a][level], false});
    }
  }
  const Unrolling unrolling = unroll_loops(vthreads, loops, trace.unroll);
  // Values that a thread holds if the compiler loads all operands of the innermost reduce level at once: of
  // all its tiles, and of the innermost tiles alone. Where they do not fit beside the accumulators, the
  // accumulators spill, which is a matter of one more reduce step (MI50: 36 steps of 2 run at full speed, 12
  // of 3 eight times slower).
  std::vector<double> innermost(axes);
  for (size_t a = 0; a < axes; ++a) innermost[a] = t.vthreads[a] * t.inner2[a];
  double operands = 0, innermost_operands = 0;
  for (size_t q = 0; q < 2; ++q) {
    operands += reduce2 * full[q];
    innermost_operands += reduce2 * product_along(access.reads[q], innermost);
  }
  const double copies_inner = vthreads * inner2, copies_reduce = copies_inner * reduce2;
  const double copies_tile = vthreads * inner * reduce2, body = accumulators * reduce_tile;

  const double fmas = access.flops / 2, warp_fmas = fmas / gpu.warp;
  const double cycle = 1 / (gpu.cores * gpu.clock_hz);
  const double compute = access.flops / gpu.flops_per_second;
  double dram = std::max(std::max(waves, 1.0) * wave_bytes, input_bytes);
  if (wave_bytes < gpu.l2_bytes) dram = std::min(dram, fetched_bytes);
  dram += output_bytes;
  // Accumulators that addresses and operands leave no register for.
  const double spilled = std::max(0.0, accumulators + 20 - register_limit) / accumulators;
  const double all_warps = blocks * warps;
  roofline_seconds = std::max({compute, dram / gpu.bytes_per_second, 1e-7});

  // Arithmetic; with the tail of the last wave, with idle lanes.
  out.resource("compute", compute);
  out.resource("compute_tail", compute * tail * warp_threads / threads);
  out.resource("multiply_adds", warp_fmas * cycle * tail * warp_threads / threads);
  // Memory: by the footprints of waves, each byte once, each fetched byte, each fetched sector.
  out.resource("dram", dram / gpu.bytes_per_second);
  out.resource("dram_once", (input_bytes + output_bytes) / gpu.bytes_per_second);
  out.resource("fetched", fetched_bytes / gpu.bytes_per_second);
  out.resource("fetched_sectors", fetch_sectors * 32 / gpu.bytes_per_second);
  out.resource("fetch_instructions", fetch_instructions * cycle * tail);
  out.resource("fetch_transactions", fetch_sectors * cycle * tail);
  // Shared memory: reads without reuse over windows, with conflicts, with all reuse.
  out.resource("shared_reads", warp_fmas * reads_full * cycle * tail);
  out.resource("shared_conflicts", warp_fmas * reads_conflicts * cycle * tail);
  out.resource("shared_distinct", all_warps * t.reduce_steps * vthreads * distinct_tile * cycle * tail);
  out.resource("shared_distinct_thread", all_warps * t.reduce_steps * distinct_thread * cycle * tail);
  out.resource("stores", all_warps * accumulators * cycle * tail);
  out.resource("store_sectors", all_warps * accumulators * store_sectors * cycle * tail);
  out.resource("store_bytes",
               output_bytes * store_sectors * kSectorElements / store_lanes / gpu.bytes_per_second);
  // Latencies: a microsecond each, per step of a wave; also times the loads that a thread waits for.
  out.resource("steps", std::ceil(waves) * t.reduce_steps * 1e-6);
  out.resource("waves", std::ceil(waves) * 1e-6);
  out.resource("fetch_latency", std::ceil(waves) * t.reduce_steps * 1e-6 *
                                    (std::ceil(shared[0] / threads) + std::ceil(shared[1] / threads)) / 4);
  out.resource("guarded_fetches", access.reads[0].windowed() ? fetch_instructions * cycle * tail : 0.0);
  out.resource("few_warps", warp_fmas * cycle * tail * std::max(1.0, 8 / (resident * warps)));
  out.resource("low_occupancy", compute * tail * std::clamp(0.25 / occupancy, 1.0, 8.0));
  // Accumulators beyond the registers, and those that a loop indexes: local memory.
  out.resource("spill_issue", warp_fmas * cycle * tail * spilled);
  out.resource("spill_bytes", fmas * 8 / gpu.bytes_per_second * spilled);
  // Operands that fill 0.6 of the registers can be loaded piecemeal; thresholds from the MI50's records.
  const double pressure = (accumulators + std::min(operands, 0.6 * register_limit)) / register_limit;
  out.resource("operand_spills", pressure > 1.13 ? warp_fmas * cycle * tail * 8 : 0);
  out.resource("operand_spill_share", warp_fmas * cycle * tail * 16 * std::clamp(pressure - 1.05, 0.0, 0.5));
  out.resource("accumulator_spills", accumulators > 0.8 * register_limit ? warp_fmas * cycle * tail * 8 : 0);
  const bool indexed = unrolling.rest_spatial > 1;
  out.resource("spills", spilled > 0 ? warp_fmas * cycle * tail * 8 : 0);
  out.resource("indexed_registers", indexed && body > 1024 ? warp_fmas * cycle * 8 : 0);
  out.resource("indexed_registers_large", indexed && body > 4096 ? warp_fmas * cycle * 8 : 0);
  out.resource("large_body", copies_tile > 1024 ? warp_fmas * cycle * 8 : 0);
  out.resource("loop_control", warp_fmas * cycle / unrolling.copies);
  out.resource("integer", totals.int_ops / gpu.warp * cycle * tail);
  out.resource("launch", 5e-6);

  out.log_column("accumulators", accumulators);
  out.log_column("threads", threads);
  out.log_column("vthreads", vthreads);
  out.log_column("blocks", blocks);
  out.log_column("reduce_steps", t.reduce_steps);
  out.log_column("reduce_tile", reduce_tile);
  out.log_column("reduce_inner", reduce2);
  static constexpr const char* kByRead[2][9] = {{"shared_a", "vector_a", "sectors_a", "lines_a", "run_a",
                                                 "fill_a", "fill_use_a", "bank_rounds_a", "thread_tile_a"},
                                                {"shared_b", "vector_b", "sectors_b", "lines_b", "run_b",
                                                 "fill_b", "fill_use_b", "bank_rounds_b", "thread_tile_b"}};
  for (size_t q = 0; q < 2; ++q) {
    const double values[] = {shared[q], trace.fetch_vector[q], sectors[q], lines[q], runs[q],
                             fills[q],  fill_use[q],           rounds[q],  full[q]};
    for (size_t i = 0; i < std::size(values); ++i) out.log_column(kByRead[q][i], values[i]);
  }
  out.log_column("store_sectors_lane", store_sectors / store_lanes);
  out.log_column("shared_bytes", shared_bytes);
  out.log_column("resident_blocks", resident);
  out.log_column("occupancy", occupancy);
  out.log_column("waves", waves);
  out.log_column("tail", tail);
  out.log_column("warp_use", threads / warp_threads);
  out.log_column("warps", warps);
  out.log_column("registers", accumulators + tile[0] + tile[1] + 24);
  out.log_column("register_limit", register_limit);
  out.log_column("register_pressure", (accumulators + tile[0] + tile[1] + 24) / register_limit);
  out.log_column("accumulator_pressure", accumulators / register_limit);
  out.log_column("blocks_by_shared", std::max(1.0, std::floor(gpu.shared_bytes / shared_bytes)));
  out.log_column("reads_per_fma", reads_tile);
  out.log_column("reads_per_fma_conflicts", reads_conflicts);
  out.log_column("distinct_per_fma", distinct_tile / (inner * reduce_tile));
  out.log_column("distinct_per_fma_thread", distinct_thread / (accumulators * reduce_tile));
  out.log_column("refetch", fetched_bytes / input_bytes);
  out.log_column("intensity_dram", access.flops / dram);
  out.log_column("intensity_block", access.flops / (fetched_bytes + output_bytes));
  out.log_column("fmas_thread", fmas / (blocks * threads));
  out.log_column("threads_total", blocks * threads);
  out.log_column("unrolled", unrolling.copies);
  out.log_column("copies_inner", copies_inner);
  out.log_column("copies_reduce", copies_reduce);
  out.log_column("copies_tile", copies_tile);
  out.log_column("body", body);
  out.log_column("unroll_room", (trace.unroll + 1) / copies_tile);
  out.log_column("rest_spatial", unrolling.rest_spatial);
  out.log_column("rest_reduce", unrolling.rest_reduce);
  out.log_column("unroll_need", (inner * reduce2 + 1) / (trace.unroll + 1));
  out.log_column("operand_pressure", (accumulators + operands) / register_limit);
  out.log_column("innermost_operand_pressure", (accumulators + innermost_operands) / register_limit);
}

void summarize_flat_gpu(const WorkloadAccess& access, const TraceSummary& trace, const LeafTotals& totals,
                        const target::Device& device, SummarySink& out, double& roofline_seconds) {
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
  roofline_seconds = std::max({compute, bytes / gpu.bytes_per_second, 1e-7});

  out.resource("compute", compute);
  out.resource("dram", bytes / gpu.bytes_per_second);
  out.resource("dram_out", access.output_bytes / gpu.bytes_per_second);
  out.resource("dram_in", access.input_bytes / gpu.bytes_per_second);
  out.resource("threads", blocks * warps * cycle * tail);
  out.resource("blocks", blocks / gpu.cores * 1e-7);
  out.resource("statements", totals.runs * per_warp);
  out.resource("integer", totals.int_ops * per_warp);
  out.resource("divisions", totals.int_divisions * per_warp);
  out.resource("guards", (totals.int_compares + totals.selects) * per_warp);
  out.resource("floats", totals.float_ops * per_warp);
  out.resource("launch", 5e-6);
  out.resource("launches", 5e-6 * trace.kernels);
  out.resource("touched", totals.bytes / gpu.bytes_per_second);
  out.resource("waves", std::ceil(waves) * 1e-6);
  out.resource("waves_window", std::ceil(waves) * 1e-6 * window);
  out.resource("reduce_threads", trace.cross_thread_reduction ? blocks * warps * cycle * tail : 0);
  out.resource("strided", trace.cross_thread_reduction ? 0 : totals.bytes / gpu.bytes_per_second);
  out.resource("lines", totals.lines * 64 / gpu.bytes_per_second);

  out.log_column("threads", threads);
  out.log_column("blocks", blocks);
  out.log_column("resident_blocks", resident);
  out.log_column("occupancy", resident * warp_threads / gpu.threads);
  out.log_column("waves", waves);
  out.log_column("tail", tail);
  out.log_column("warp_use", threads / warp_threads);
  out.log_column("warps", warps);
  out.column("kernels", trace.kernels);
  out.column("inlined", trace.inlined);
  out.column("reduce_threads", trace.cross_thread_reduction ? trace.flat_threads[0] : 0);
  out.log_column("unroll", trace.unroll + 1);
  out.column("leaves", totals.leaves);
  out.log_column("threads_second", trace.flat_threads[1] + 1);
  out.log_column("window", window);
  out.log_column("inputs_per_output", access.input_bytes / std::max(access.output_bytes, 1.0));
  out.log_column("threads_total", blocks * threads);
}

}  // namespace tensorsmith::feature
