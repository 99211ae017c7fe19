// GPU programs with a tiled product: occupancy, waves, memory transactions, bank conflicts, register blocking.
#include <array>
#include <bit>

#include "feature/summary_parts.h"
#include "feature/summary_schema_gpu.h"

namespace tensorsmith::feature {

namespace {

constexpr int kLineBits = 5;  // of elements: a line has 128 bytes
constexpr int kBanks = 32;

double gpu_product(std::span<const double> values) {
  double out = 1;
  for (const double v : values) out *= v;
  return out;
}

// Returns the addresses in ascending order. They usually are sorted already.
std::span<int64_t> in_order(std::span<const int64_t> addresses,
                            std::array<int64_t, target::GpuMachine::kMostLanes>& storage) {
  const auto out = std::span(storage).first(addresses.size());
  std::ranges::copy(addresses, out.begin());
  if (!std::ranges::is_sorted(out)) std::ranges::sort(out);
  return out;
}

// Returns the number of distinct blocks of 2^unit_bits elements.
size_t distinct(std::span<const int64_t> addresses, int unit_bits) {
  std::array<int64_t, target::GpuMachine::kMostLanes> storage;
  const auto sorted = in_order(addresses, storage);
  size_t out = sorted.empty() ? 0 : 1;
  for (size_t i = 1; i < sorted.size(); ++i)
    out += sorted[i] >> unit_bits != sorted[i - 1] >> unit_bits ? 1 : 0;
  return out;
}

// Returns the rounds that the banks of shared memory need: accesses to different addresses in a
// bank are serialized.
int bank_rounds(std::span<const int64_t> addresses) {
  std::array<int64_t, target::GpuMachine::kMostLanes> storage;
  const auto sorted = in_order(addresses.first(std::min<size_t>(addresses.size(), kBanks)), storage);
  std::array<int, kBanks> count{};
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || sorted[i] != sorted[i - 1]) ++count[sorted[i] % kBanks];
  }
  return *std::max_element(count.begin(), count.end());
}

// Quantities of the tiling by axis.
struct GpuLevels {
  ByAxis<double> blocks, vthreads, threads, inner, inner2, block_tile, thread_tile;
  ByAxis<double> reduce_tile, reduce2;  // reduce_tile: both inner levels
  double reduce_steps = 1;

  explicit GpuLevels(const Tiles& tiles) {
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

// Returns the product of the sizes of the spatial axes that move along a dimension of the read.
double product_along(const WorkloadAccess::Read& read, std::span<const double> sizes) {
  double out = 1;
  for (size_t a = 0; a < sizes.size(); ++a) {
    bool moves = false;
    for (const auto& dim : read.dims) {
      for (const auto& term : dim) moves = moves || (!term.reduce && term.axis == a);
    }
    if (moves) out *= sizes[a];
  }
  return out;
}

// The quantities of the kernel that do not depend on addresses.
struct Kernel {
  const WorkloadAccess& access;
  const TraceSummary& trace;
  target::GpuMachine gpu;
  GpuLevels t;
  size_t axes;
  double blocks, threads, vthreads, inner, inner2, accumulators, reduce_tile, reduce2;
  double warps, warp_threads;
  size_t lanes;
  int sector_bits;  // of elements: log2 of a sector's

  Kernel(const WorkloadAccess& access_in, const Tiles& tiles, const TraceSummary& trace_in,
         const target::Device& device)
      : access(access_in),
        trace(trace_in),
        gpu(device),
        t(tiles),
        axes(t.blocks.size()),
        blocks(gpu_product(t.blocks)),
        threads(gpu_product(t.threads)),
        vthreads(gpu_product(t.vthreads)),
        inner(gpu_product(t.inner)),
        inner2(gpu_product(t.inner2)),
        accumulators(vthreads * inner),
        reduce_tile(gpu_product(t.reduce_tile)),
        reduce2(gpu_product(t.reduce2)),
        warps(std::ceil(threads / gpu.warp)),
        warp_threads(warps * gpu.warp),
        lanes(gpu.warp),
        sector_bits(std::countr_zero(static_cast<uint64_t>(gpu.sector_bytes()) / 4)) {}
};

// Both reads of the product: elements of a block's tile in shared memory, and elements along the
// axes of a thread's tiles: of all tiles (`full`) and of one tile (`tile`).
struct Operands {
  std::array<ByAxis<double>, 2> extents;
  std::array<double, 2> shared{}, full{}, tile{};
  double input_bytes = 0, output_bytes = 4, shared_bytes = 0;
  // Values that a thread holds if the compiler loads all operands of the innermost reduce level at
  // once: for all its tiles, and for the innermost tiles only. If they do not fit alongside the
  // accumulators, the accumulators spill. A reduce length that is larger by one can decide this
  // (MI50: 36 steps of 2 run at full speed, 12 steps of 3 eight times slower).
  double values = 0, innermost_values = 0;
};

double elements_of(const WorkloadAccess::Read& read) {
  double out = 1;
  for (const int64_t n : read.shape) out *= n;
  return out;
}

Operands operands_of(const Kernel& k) {
  Operands out;
  ByAxis<double> innermost(k.axes, 1);
  for (size_t a = 0; a < k.axes; ++a) innermost[a] = k.t.vthreads[a] * k.t.inner2[a];
  for (size_t q = 0; q < 2; ++q) {
    const auto& read = k.access.reads[q];
    out.extents[q] = touched_extents(read, k.t.block_tile, k.t.reduce_tile);
    out.shared[q] = gpu_product(out.extents[q]);
    out.full[q] = product_along(read, k.t.thread_tile);
    out.tile[q] = product_along(read, k.t.inner);
    out.input_bytes += 4 * elements_of(read);
    out.values += k.reduce2 * out.full[q];
    out.innermost_values += k.reduce2 * product_along(read, innermost);
  }
  out.shared_bytes = 4 * (out.shared[0] + out.shared[1]);
  for (const int64_t n : k.access.spatial) out.output_bytes *= n;
  return out;
}

struct Residency {
  double register_limit = 0;  // registers that the compiler may give a thread
  double room = 0;            // blocks that a multiprocessor can hold
  double concurrent = 0;      // blocks that the device can hold
  double waves = 0;           // number of blocks divided by these
};

Residency residency_of(const Kernel& k, const Operands& operands) {
  const target::GpuMachine& gpu = k.gpu;
  Residency out;
  // On NVIDIA, the threads of the block share the registers, since the kernel is compiled for its
  // block size. On AMD, TVM compiles kernels for the largest block.
  const auto sharing = gpu.amd ? gpu.max_threads : static_cast<int64_t>(k.warp_threads);
  out.register_limit = static_cast<double>(gpu.register_limit(sharing));
  // For the occupancy, a thread's registers are the accumulators, the values of one operand and
  // addresses.
  const double registers =
      std::min(k.accumulators + std::min(operands.tile[0], 64.0) + 24, out.register_limit);
  out.room = gpu.resident_blocks(k.warp_threads, operands.shared_bytes, registers);
  out.concurrent = out.room * gpu.cores;
  out.waves = k.blocks / out.concurrent;
  return out;
}

// Returns the bytes that the blocks of a wave read together. Blocks are numbered with the last axis
// fastest.
double bytes_of_wave(const Kernel& k, double concurrent) {
  ByAxis<double> wave_tile(k.axes, 1);
  double left = std::min(concurrent, k.blocks);
  for (size_t a = k.axes; a-- > 0;) {
    const double together = std::min(k.t.blocks[a], std::max(1.0, std::ceil(left)));
    left /= k.t.blocks[a];
    const double extent = k.access.spatial[a];
    wave_tile[a] = std::min(k.t.block_tile[a] * together, extent);
  }
  ByAxis<double> whole_reduce;
  for (const int64_t extent : k.access.reduce) whole_reduce.push_back(extent);
  double out = 0;
  for (const auto& read : k.access.reads)
    out += 4 * std::min(touched_elements(read, wave_tile, whole_reduce), elements_of(read));
  return out;
}

// The addresses of the lanes of a warp.
using Addresses = std::array<int64_t, target::GpuMachine::kMostLanes>;
std::span<const int64_t> of_lanes(const Kernel& k, const Addresses& addresses) {
  return std::span(addresses).first(k.lanes);
}

// Fetches from device memory into shared memory. By operand: sectors and lines per lane, elements
// that a thread fetches, the share of them that is needed, contiguous bytes.
struct Fetches {
  std::array<double, 2> sectors{}, lines{}, fills{}, fill_use{}, runs{};
  double bytes = 0;  // bytes of the whole program
  // Per step of a block's warps: words of all lanes, instructions, sectors. Per step of a thread:
  // fetches.
  double words = 0, instructions = 0, step_sectors = 0, batches = 0;
};

Fetches fetches_of(const Kernel& k, const Operands& operands) {
  Fetches out;
  Addresses addresses{};
  for (size_t q = 0; q < 2; ++q) {
    const auto& read = k.access.reads[q];
    const auto& extent = operands.extents[q];
    const double shared = operands.shared[q];
    const double vector = std::max(k.trace.fetch_vector[q], 1.0);
    // The position of each lane's fetch in the tile is counted up with a carry. Dividing by the
    // extents for each lane took a third of the time of a summary.
    ByAxis<int64_t> at(extent.size(), 0), stride(extent.size(), 1);
    for (size_t d = extent.size(); d-- > 1;) stride[d - 1] = stride[d] * read.shape[d];
    int64_t address = 0;
    double position = 0;
    for (size_t l = 0; l < k.lanes; ++l) {
      const double next = std::min(l * vector, shared - 1);
      auto carry = static_cast<int64_t>(next) - static_cast<int64_t>(position);
      position = next;
      for (size_t d = extent.size(); d-- > 0 && carry > 0;) {
        const auto n = static_cast<int64_t>(extent[d]);
        int64_t moved = at[d] + carry;
        carry = moved < n ? 0 : moved / n;
        if (carry > 0) moved %= n;
        address += (moved - at[d]) * stride[d];
        at[d] = moved;
      }
      addresses[l] = address;
    }
    const auto used = of_lanes(k, addresses);
    const double lanes = k.lanes, active = std::min({k.threads, lanes, std::ceil(shared / vector)});
    const double sector_count = distinct(used, k.sector_bits);
    out.sectors[q] = sector_count / active;
    out.lines[q] = distinct(used, kLineBits) / active;
    out.fills[q] = std::ceil(shared / vector / k.threads) * vector;
    out.fill_use[q] = shared / (out.fills[q] * k.threads);
    out.runs[q] = 4 * contiguous_elements(extent, read.shape);
    const double warp_words = k.warps * out.fills[q];
    out.words += warp_words;
    out.instructions += warp_words / vector;
    out.batches += std::ceil(out.fills[q] / vector);
    out.step_sectors += warp_words * sector_count;
    out.bytes += k.blocks * k.t.reduce_steps * shared * 4;
  }
  return out;
}

// The coordinates of the first warp's lanes in the tile; the last axis is fastest.
using Coordinates = std::array<std::array<double, kMaxAxes>, target::GpuMachine::kMostLanes>;
Coordinates coordinates_of(const Kernel& k) {
  Coordinates out{};
  ByAxis<double> at(k.axes, 0);
  for (size_t l = 0; l < k.lanes; ++l) {
    for (size_t a = 0; a < k.axes; ++a) out[l][a] = at[a] * k.t.inner[a];
    for (size_t a = k.axes; a-- > 0;) {
      if (++at[a] < k.t.threads[a]) break;
      at[a] = 0;
    }
  }
  return out;
}

// Reads of shared memory per multiply-add of a tile, without and with bank conflicts. Then the
// distinct values that a thread reads, with those shared by overlapping windows counted once: of
// its tile and of all its tiles.
struct SharedReads {
  std::array<double, 2> rounds{};  // rounds that the banks need
  double tile = 0, conflicts = 0;
  double distinct_tile = 0, distinct_thread = 0;
};

SharedReads shared_reads_of(const Kernel& k, const Operands& operands, const Coordinates& lane) {
  SharedReads out;
  Addresses addresses{};
  for (size_t q = 0; q < 2; ++q) {
    const auto& read = k.access.reads[q];
    const auto& extent = operands.extents[q];
    ByAxis<double> step(k.axes, 0);  // step of the address, by axis
    double stride = 1;
    for (size_t d = extent.size(); d-- > 0;) {
      for (const auto& term : read.dims[d]) {
        if (!term.reduce) step[term.axis] += term.coefficient * stride;
      }
      stride *= extent[d];
    }
    for (size_t l = 0; l < k.lanes; ++l) {
      double address = 0;
      for (size_t a = 0; a < k.axes; ++a) address += lane[l][a] * step[a];
      addresses[l] = static_cast<int64_t>(std::abs(address));
    }
    out.rounds[q] = bank_rounds(of_lanes(k, addresses));
    out.tile += operands.tile[q] / k.inner;
    out.conflicts += operands.tile[q] / k.inner * out.rounds[q];
    out.distinct_tile += touched_elements(read, k.t.inner, k.t.reduce_tile);
    out.distinct_thread += touched_elements(read, k.t.thread_tile, k.t.reduce_tile);
  }
  return out;
}

// Returns the sectors that the lanes of a warp touch in one store of the output.
double store_sectors_of(const Kernel& k, const Coordinates& lane) {
  Addresses addresses{};
  for (size_t l = 0; l < k.lanes; ++l) {
    double address = 0, stride = 1;
    for (size_t a = k.axes; a-- > 0;) {
      address += lane[l][a] * stride;
      stride *= k.access.spatial[a];
    }
    addresses[l] = static_cast<int64_t>(address);
  }
  return distinct(of_lanes(k, addresses), k.sector_bits);
}

// Unrolls the loops around the multiply-add, innermost first, inside the outermost reduce level.
Unrolling unrolling_of(const Kernel& k, const Tiles& tiles) {
  std::array<UnrollLoop, size_t{4} * kMaxAxes> loops;
  size_t count = 0;
  for (size_t level : {4UL, 2UL, 3UL, 1UL}) {
    const bool reduce = level < 3;
    if (reduce) {
      for (size_t a = tiles.reduce.size(); a-- > 0;) loops[count++] = {tiles.reduce[a][level], true};
    } else {
      for (size_t a = k.axes; a-- > 0;) loops[count++] = {tiles.spatial[a][level], false};
    }
  }
  return unroll_loops(k.vthreads, std::span(loops).first(count), k.trace.unroll);
}

// All quantities above.
struct Figures {
  Kernel k;
  Operands operands;
  Residency residency;
  Rounds rounds;
  Fetches fetches;
  SharedReads reads;
  double store_sectors, store_lanes;
  Unrolling unrolling;
  double copies_tile, body;  // multiply-adds of the innermost reduction, and of a step
  double fmas, compute, dram, all_sectors;
  double warp_steps;  // steps of the warps of all blocks on the busiest multiprocessor
  double warp_fmas;   // seconds of all its multiply-adds, shared evenly by the schedulers

  Figures(const WorkloadAccess& access, const Tiles& tiles, const TraceSummary& trace,
          const target::Device& device)
      : k(access, tiles, trace, device),
        operands(operands_of(k)),
        residency(residency_of(k, operands)),
        rounds(k.blocks, residency.room, k.warps, k.gpu),
        fetches(fetches_of(k, operands)) {
    const Coordinates lane = coordinates_of(k);
    reads = shared_reads_of(k, operands, lane);
    store_sectors = store_sectors_of(k, lane);
    store_lanes = std::min<double>(k.threads, k.lanes);
    unrolling = unrolling_of(k, tiles);
    copies_tile = k.vthreads * k.inner * k.reduce2;
    body = k.accumulators * k.reduce_tile;
    fmas = access.flops / 2;
    compute = access.flops / k.gpu.flops_per_second;
    warp_steps = rounds.of_core * k.t.reduce_steps * k.warps;
    warp_fmas = warp_steps * body * k.lanes / k.gpu.fma_lanes() * k.gpu.seconds_per_cycle();
    all_sectors = k.blocks * k.t.reduce_steps * fetches.step_sectors;
    const double wave_bytes = bytes_of_wave(k, residency.concurrent);
    dram = std::max(std::max(residency.waves, 1.0) * wave_bytes, operands.input_bytes);
    if (wave_bytes < k.gpu.l2_bytes) dram = std::min(dram, fetches.bytes);
    dram += operands.output_bytes;
  }
};

using Resources = Quantities<kTiledGpuResources>;
using Columns = Quantities<kTiledGpuColumns>;

void set_memory(const Figures& f, Resources& seconds) {
  const Kernel& k = f.k;
  const double bytes_per_second = k.gpu.bytes_per_second, cycle = k.gpu.seconds_per_cycle();
  const double lanes = k.lanes, word = lanes / k.gpu.shared_lanes() * cycle;
  // Memory: by the footprints of the waves, with each byte counted once, and by the fetched
  // sectors.
  seconds.set("dram", f.dram / bytes_per_second);
  seconds.set("dram_once", (f.operands.input_bytes + f.operands.output_bytes) / bytes_per_second);
  seconds.set("l2", f.all_sectors * k.gpu.sector_bytes() / k.gpu.l2_bytes_per_second());
  const double steps = f.rounds.of_core * k.t.reduce_steps;
  seconds.set("fetch_instructions", steps * f.fetches.instructions * lanes / 32 * cycle);
  seconds.set("fetch_words", steps * f.fetches.words * word);
  seconds.set("fetch_transactions", steps * f.fetches.step_sectors / 2 * cycle);
  seconds.set("guarded_fetches", k.access.reads[0].windowed() ? steps * f.fetches.words * word : 0.0);
  // Shared memory: reads without reuse over windows, the extra rounds of bank conflicts, reads with
  // all reuse.
  seconds.set("shared_reads", f.warp_steps * f.body * f.reads.tile * word);
  seconds.set("shared_conflicts", f.warp_steps * f.body * (f.reads.conflicts - f.reads.tile) * word);
  seconds.set("shared_distinct", f.warp_steps * k.vthreads * f.reads.distinct_tile * word);
  seconds.set("shared_distinct_thread", f.warp_steps * f.reads.distinct_thread * word);
  const double stores = f.rounds.of_core * k.warps * k.accumulators;
  seconds.set("stores", stores * lanes / 32 * cycle);
  seconds.set("store_sectors", stores * f.store_sectors / 2 * cycle);
  seconds.set("store_bytes", f.operands.output_bytes * f.store_sectors * k.gpu.sector_bytes() / 4 /
                                 f.store_lanes / bytes_per_second);
}

void set_gpu_arithmetic(const Figures& f, Resources& seconds) {
  const Kernel& k = f.k;
  const double cycle = k.gpu.seconds_per_cycle(), steps = f.rounds.count * k.t.reduce_steps;
  // Seconds that one warp keeps its scheduler busy in a step.
  const double issue = f.body * k.lanes * k.gpu.schedulers() / k.gpu.fma_lanes() * cycle;
  const auto busy = [&](double blocks) { return f.rounds.scheduler_warps(blocks) * issue; };
  const double multiply_adds = k.t.reduce_steps * f.rounds.sum(busy);
  seconds.set("multiply_adds", multiply_adds);
  seconds.set("fetch_latency", steps * k.gpu.memory_latency());
  seconds.set("fetch_latencies", steps * k.gpu.memory_latency() * f.fetches.batches);
  seconds.set("shared_latency", steps * k.reduce_tile * k.gpu.shared_latency());
  seconds.set("loop_control",
              f.warp_steps * f.body / f.unrolling.copies * k.lanes / 32 / k.gpu.schedulers() * cycle);
  seconds.set("launch", 5e-6);
  seconds.set("dispatch", k.blocks * k.gpu.block_start_cycles * cycle);
  // Accumulators that exceed the registers, and those that a loop indexes, are in local memory.
  const double limit = f.residency.register_limit;
  // Share of the accumulators for which addresses and operands leave no register.
  const double spilled = std::max(0.0, k.accumulators + 20 - limit) / k.accumulators;
  seconds.set("spill_issue", f.warp_fmas * spilled);
  seconds.set("spill_bytes", f.fmas * 8 / k.gpu.bytes_per_second * spilled);
  // Operands count up to 0.6 of the registers, since more of them can be loaded piecemeal. The
  // thresholds are from the records of the MI50.
  const double pressure = (k.accumulators + std::min(f.operands.values, 0.6 * limit)) / limit;
  seconds.set("operand_spills", pressure > 1.13 ? multiply_adds * 8 : 0);
  seconds.set("operand_spill_share", multiply_adds * 16 * std::clamp(pressure - 1.05, 0.0, 0.5));
  seconds.set("accumulator_spills", k.accumulators > 0.8 * limit ? multiply_adds * 8 : 0);
  seconds.set("spills", spilled > 0 ? multiply_adds * 8 : 0);
  const bool indexed = f.unrolling.rest_spatial > 1;
  seconds.set("indexed_registers", indexed && f.body > 1024 ? multiply_adds * 8 : 0);
  seconds.set("indexed_registers_large", indexed && f.body > 4096 ? multiply_adds * 8 : 0);
  seconds.set("large_body", f.copies_tile > 1024 ? multiply_adds * 8 : 0);
}

void set_tile(const Figures& f, Columns& columns) {
  const Kernel& k = f.k;
  columns.set("accumulators", k.accumulators);
  columns.set("threads", k.threads);
  columns.set("vthreads", k.vthreads);
  columns.set("blocks", k.blocks);
  columns.set("reduce_steps", k.t.reduce_steps);
  columns.set("reduce_tile", k.reduce_tile);
  columns.set("reduce_inner", k.reduce2);
  static constexpr ColumnName<kTiledGpuColumns> kOperands[] = {"shared_a", "shared_b"};
  for (size_t q = 0; q < 2; ++q) {
    Quantities<kTiledGpuOperandFields> fields;
    fields.set("shared", f.operands.shared[q]);
    fields.set("vector", k.trace.fetch_vector[q]);
    fields.set("sectors", f.fetches.sectors[q]);
    fields.set("lines", f.fetches.lines[q]);
    fields.set("run", f.fetches.runs[q]);
    fields.set("fill", f.fetches.fills[q]);
    fields.set("fill_use", f.fetches.fill_use[q]);
    fields.set("bank_rounds", f.reads.rounds[q]);
    fields.set("thread_tile", f.operands.full[q]);
    columns.set(kOperands[q], fields);
  }
  columns.set("store_sectors_lane", f.store_sectors / f.store_lanes);
  columns.set("shared_bytes", f.operands.shared_bytes);
  columns.set("refetch", f.fetches.bytes / f.operands.input_bytes);
  columns.set("intensity_dram", k.access.flops / f.dram);
  columns.set("intensity_block", k.access.flops / (f.fetches.bytes + f.operands.output_bytes));
  columns.set("fmas_thread", f.fmas / (k.blocks * k.threads));
  columns.set("threads_total", k.blocks * k.threads);
}

void set_occupancy(const Figures& f, Columns& columns) {
  const Kernel& k = f.k;
  const double limit = f.residency.register_limit;
  const double registers = k.accumulators + f.operands.tile[0] + f.operands.tile[1] + 24;
  columns.set("resident_blocks", f.rounds.resident);
  columns.set("occupancy", f.rounds.resident * k.warp_threads / k.gpu.core_threads);
  columns.set("rounds", f.rounds.count);
  columns.set("tail", f.rounds.tail);
  columns.set("warp_use", k.threads / k.warp_threads);
  columns.set("warps", k.warps);
  columns.set("registers", registers);
  columns.set("register_limit", limit);
  columns.set("register_pressure", registers / limit);
  columns.set("accumulator_pressure", k.accumulators / limit);
  columns.set("operand_pressure", (k.accumulators + f.operands.values) / limit);
  columns.set("innermost_operand_pressure", (k.accumulators + f.operands.innermost_values) / limit);
  columns.set("blocks_by_shared",
              std::max(1.0, std::floor(k.gpu.core_shared_bytes / f.operands.shared_bytes)));
  columns.set("reads_per_fma", f.reads.tile);
  columns.set("reads_per_fma_conflicts", f.reads.conflicts);
  columns.set("distinct_per_fma", f.reads.distinct_tile / (k.inner * k.reduce_tile));
  columns.set("distinct_per_fma_thread", f.reads.distinct_thread / (k.accumulators * k.reduce_tile));
}

void set_unrolling(const Figures& f, Columns& columns) {
  const Kernel& k = f.k;
  const double copies_inner = k.vthreads * k.inner2, limit = k.trace.unroll + 1;
  columns.set("unrolled", f.unrolling.copies);
  columns.set("copies_inner", copies_inner);
  columns.set("copies_reduce", copies_inner * k.reduce2);
  columns.set("copies_tile", f.copies_tile);
  columns.set("body", f.body);
  columns.set("unroll_room", limit / f.copies_tile);
  columns.set("rest_spatial", f.unrolling.rest_spatial);
  columns.set("rest_reduce", f.unrolling.rest_reduce);
  columns.set("unroll_need", (k.inner * k.reduce2 + 1) / limit);
}

}  // namespace

void summarize_tiled_gpu(const WorkloadAccess& access, const Tiles& tiles, const TraceSummary& trace,
                         const target::Device& device, ProgramSummary& out) {
  const Figures f(access, tiles, trace, device);
  out.roofline_seconds = std::max({f.compute, f.dram / f.k.gpu.bytes_per_second, 1e-7});
  Resources seconds;
  set_memory(f, seconds);
  set_gpu_arithmetic(f, seconds);
  add_resources(seconds, out);
  Columns columns;
  set_tile(f, columns);
  set_occupancy(f, columns);
  set_unrolling(f, columns);
  add_columns(columns, out);
}

}  // namespace tensorsmith::feature
