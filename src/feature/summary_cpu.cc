// CPU programs: use of cores and vector lanes, footprints of tiles relative to the caches.
#include "feature/summary_parts.h"
#include "feature/summary_schema_cpu.h"

namespace tensorsmith::feature {

namespace {

// Levels of a tiling: [rounds, outer, middle, inner] for spatial axes, [rounds, inner] for reduce
// axes. TVM's order of loops is S0 S1 R0 S2 R1 S3.
struct Levels {
  std::vector<double> rounds, outer, middle, inner;
  std::vector<double> reduce_inner, reduce_whole;
  double reduce_steps = 1;

  explicit Levels(const Tiles& tiles) {
    for (const auto& s : tiles.spatial) {
      rounds.push_back(s[0]);
      outer.push_back(s[1]);
      middle.push_back(s[2]);
      inner.push_back(s[3]);
    }
    for (const auto& r : tiles.reduce) {
      reduce_steps *= r[0];
      reduce_inner.push_back(r[1]);
      reduce_whole.push_back(r[0] * r[1]);
    }
  }
};

double product_of(std::span<const double> values) {
  double out = 1;
  for (const double v : values) out *= v;
  return out;
}
std::vector<double> times(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = a[i] * b[i];
  return out;
}
double bytes_of(const WorkloadAccess& access, std::span<const double> spatial,
                std::span<const double> reduce) {
  double out = 0;
  for (const auto& read : access.reads) out += 4 * touched_elements(read, spatial, reduce);
  return out;
}

// The tiles of a product on the cores. `chunks`: iterations of the parallel loop.
struct TiledProduct {
  const WorkloadAccess& access;
  const TraceSummary& trace;
  const target::CpuMachine& cpu;
  Levels t;
  double chunks, rounds;
  double row, inner, rows, reduce_inner, outer_loops, tile_loops, middle_loops, kernels;
  double vectors, accumulators, loads;
  double cycle;  // seconds per cycle of work that all chunks share
  std::vector<double> middle, outer;
  double step_tile, deep_tile;

  TiledProduct(const WorkloadAccess& access_in, const Tiles& tiles, const TraceSummary& trace_in,
               const target::CpuMachine& cpu_in, double chunks_in)
      : access(access_in),
        trace(trace_in),
        cpu(cpu_in),
        t(tiles),
        chunks(chunks_in),
        rounds(std::ceil(chunks / cpu.cores)),
        row(t.inner.back()),
        inner(product_of(t.inner)),
        rows(inner / row),
        reduce_inner(product_of(t.reduce_inner)),
        outer_loops(product_of(t.rounds)),
        tile_loops(outer_loops * product_of(t.outer)),
        middle_loops(product_of(t.middle)),
        kernels(tile_loops * middle_loops),  // executions of the innermost tile per reduce step
        vectors(std::ceil(row / cpu.lanes())),
        accumulators(rows * vectors),
        loads((vectors + rows) / (vectors * rows)),  // vector loads and broadcasts per vector multiply-add
        cycle(rounds / chunks / cpu.clock_hz),
        middle(times(t.middle, t.inner)),
        outer(times(t.outer, middle)),
        step_tile(bytes_of(access, middle, t.reduce_inner)),
        deep_tile(bytes_of(access, middle, t.reduce_whole)) {}
};

// The data that a chunk of the parallel loop touches. The parallel loop fuses the two outer levels,
// or is the first one.
struct Chunk {
  double repeats, bytes, output;

  explicit Chunk(const TiledProduct& p) {
    const bool fine = p.chunks >= 0.99 * p.tile_loops;
    const std::vector<double>& tile = fine ? p.middle : p.outer;
    repeats = std::max(1.0, (fine ? p.tile_loops : p.outer_loops) / p.chunks);
    bytes = bytes_of(p.access, tile, p.t.reduce_whole);
    output = 4 * product_of(tile);
  }
};

using TileSeconds = Quantities<kTileResources>;

void set_arithmetic(const TiledProduct& p, TileSeconds& seconds) {
  const double fmas = p.access.flops / 2;
  const double vector_fmas = fmas / p.row * p.vectors * p.cycle;
  seconds.set("multiply_adds", vector_fmas);
  seconds.set("multiply_adds_scalar", fmas * p.cycle);
  seconds.set("loads", vector_fmas * p.loads);
  seconds.set("fma_latency", vector_fmas * std::max(1.0, 8 / p.accumulators));
  seconds.set("spills", p.accumulators > p.cpu.registers - 4 ? vector_fmas : 0);
  seconds.set("kernel_starts", p.kernels * p.t.reduce_steps * p.cycle);
  seconds.set("accumulator_moves", p.kernels * p.t.reduce_steps * p.accumulators * p.cycle);
}

// Bytes moved between the levels of memory. A tile in a cache is read again in each reduce step.
void set_traffic(const TiledProduct& p, const Chunk& chunk, TileSeconds& seconds) {
  const WorkloadAccess::Read &first = p.access.reads[0], &second = p.access.reads[1];
  const target::CpuMachine& cpu = p.cpu;
  const double steps = p.t.reduce_steps, bytes_per_second = cpu.bytes_per_second;
  const double kernel_bytes = bytes_of(p.access, p.t.inner, p.t.reduce_inner) * p.kernels * steps;
  const double step_bytes = p.step_tile * p.tile_loops * steps;
  const double line_cycle = p.cycle / 64;  // 64 bytes per cycle and core
  seconds.set("tile_bytes_first", 4 * touched_elements(first, p.t.inner, p.t.reduce_inner) * p.kernels *
                                      steps / bytes_per_second);
  seconds.set("step_bytes_first", 4 * touched_elements(first, p.middle, p.t.reduce_inner) * p.tile_loops *
                                      steps / bytes_per_second);
  seconds.set("step_bytes_second", 4 * touched_elements(second, p.middle, p.t.reduce_inner) * p.tile_loops *
                                       steps / bytes_per_second);
  seconds.set("step_bytes", step_bytes * line_cycle);
  seconds.set("outer_bytes", bytes_of(p.access, p.outer, p.t.reduce_whole) * p.outer_loops * line_cycle);
  seconds.set("l1_misses", p.step_tile > 0.8 * cpu.l1_bytes ? kernel_bytes * line_cycle : 0);
  seconds.set("l2_misses", p.deep_tile > 0.8 * cpu.l2_bytes ? step_bytes * line_cycle : 0);
  const double chunk_cycle =
      p.rounds * chunk.repeats / (8 * cpu.clock_hz);  // 8 bytes per cycle from the last level
  seconds.set("chunk_output", chunk.output * chunk_cycle);
  seconds.set("chunk_bytes", std::min(chunk.bytes, cpu.l2_bytes) * chunk_cycle);
  seconds.set("chunk_bytes_beyond", std::max(chunk.bytes - cpu.l2_bytes, 0.0) * chunk_cycle);
  const double bytes = p.access.input_bytes + p.access.output_bytes;
  seconds.set("dram", bytes / bytes_per_second);
  seconds.set("dram_in", p.access.input_bytes / bytes_per_second);
  seconds.set("dram_large", bytes / bytes_per_second * std::clamp(std::log2(bytes / 1.28e8) / 2, 0.0, 2.0));
}

Quantities<kTileColumns> tile_columns(const TiledProduct& p, const Chunk& chunk) {
  std::vector<UnrollLoop> loops;
  for (size_t a = p.t.inner.size(); a-- > 0;) loops.push_back({p.t.inner[a], false});
  for (size_t a = p.t.reduce_inner.size(); a-- > 0;) loops.push_back({p.t.reduce_inner[a], true});
  for (size_t a = p.t.middle.size(); a-- > 0;) loops.push_back({p.t.middle[a], false});
  const double copies = p.inner * p.reduce_inner * p.middle_loops;
  const ByAxis<double> extents = touched_extents(p.access.reads[1], p.t.inner, p.t.reduce_inner);
  Quantities<kTileColumns> columns;
  columns.set("deep_tile", p.deep_tile);
  columns.set("step_tile", p.step_tile);
  columns.set("chunk_bytes", chunk.bytes);
  columns.set("chunk_output", chunk.output);
  columns.set("run_b", 4 * contiguous_elements(extents, p.access.reads[1].shape));
  columns.set("copies_tile", copies);
  columns.set("unroll_room", (p.trace.unroll + 1) / copies);
  columns.set("rest_spatial", unroll_loops(1, loops, p.trace.unroll).rest_spatial);
  columns.set("outer", product_of(p.t.outer));
  columns.set("rounds", p.outer_loops);
  columns.set("middle", p.middle_loops);
  columns.set("inner", p.inner);
  columns.set("row", p.row);
  columns.set("rows", p.rows);
  columns.set("accumulators", p.accumulators);
  columns.set("loads_per_fma", p.loads);
  columns.set("reduce_inner", p.reduce_inner);
  columns.set("reduce_steps", p.t.reduce_steps);
  columns.set("chunks_core", p.rounds);
  columns.set("chunk_repeats", chunk.repeats);
  return columns;
}

// Adds the resources and columns that tiles have beyond those of the leaves.
void summarize_tiles(const TiledProduct& product, ProgramSummary& out) {
  const Chunk chunk(product);
  TileSeconds seconds;
  set_arithmetic(product, seconds);
  set_traffic(product, chunk, seconds);
  seconds.set("start", 1e-6);
  seconds.set("rounds", product.rounds * 1e-7);
  seconds.set("cores_started", 1e-6 * std::min(product.chunks, product.cpu.cores) / product.cpu.cores);
  add_resources(seconds, out);
  add_columns(tile_columns(product, chunk), out);
}

// The counts of a leaf and its use of cores and lanes.
struct Leaf {
  bool vectorized, parallel;
  double statements;
  double width, workers;  // extent of the vectorized loop; chunks of the parallel loop
  double busy, lanes, lane_use;
  double float_ops, math, index;

  Leaf(const PerStoreRow& row, const target::CpuMachine& cpu)
      : vectorized(row["vec_num"] > 0),
        parallel(row["parallel_num"] > 0),
        statements(row.quantity("outer_prod")),
        width(vectorized ? std::round(row.quantity("vec_len")) : 1),
        workers(parallel ? std::round(row.quantity("parallel_prod")) : 1),
        busy(workers >= 1 ? workers / std::ceil(workers / cpu.cores) : 1),
        lanes(vectorized ? std::max(1.0, std::min(width, cpu.lanes())) : 1),
        lane_use(vectorized && width > 0 ? width / std::ceil(width / cpu.lanes()) / cpu.lanes()
                                         : 1 / cpu.lanes()),
        float_ops(row.quantity("float_addsub") + row.quantity("float_mul") + row.quantity("float_divmod") +
                  row.quantity("float_cmp")),
        math(row.quantity("float_mathfunc") + row.quantity("float_otherfunc")),
        index(row.quantity("int_addsub") + row.quantity("int_mul") + 4 * row.quantity("int_divmod")) {}
};

// Sums over the leaves, each with its own use of cores and lanes; their times add up.
struct LeafSums {
  double operations = 0, operations_scalar = 0, math_scalar = 0, math_vector = 0, reused = 0;
  double reused_lines = 0, unique = 0, integer = 0, serial = 0, lines = 0, chunk_starts = 0;
  double floats = 0, line_bytes = 0, longest = 0, overlapped = 0;
  double parallel_leaves = 0, runs = 0, parallel_weight = 0, vector_weight = 0, least_parallel = 1e30;
  double heaviest = -1, chunks = 1, heavy_vector = 1;

  void add(const PerStoreRow& row, const target::CpuMachine& cpu) {
    const Leaf leaf(row, cpu);
    double touched_lines = 0;
    for (size_t b = 0; b < kRowBuffers; ++b) {
      const auto buffer = row.buffer(b);
      reused += buffer.quantity("bytes_d_reuse_ct");
      reused_lines += buffer.quantity("lines_d_reuse_ct");
      unique += buffer.quantity("unique_bytes");
      touched_lines += buffer.quantity("lines");
    }
    add_times(leaf, touched_lines, cpu);
    add_shape(leaf);
  }

 private:
  void add_times(const Leaf& leaf, double touched_lines, const target::CpuMachine& cpu) {
    const double core_cycle = 1 / (cpu.clock_hz * leaf.busy);
    const double float_seconds =
        leaf.float_ops / (2 * cpu.fma_per_cycle * cpu.lanes() * leaf.lane_use) * core_cycle;
    const double math_seconds = leaf.math / (0.5 * cpu.lanes() * leaf.lane_use) * core_cycle;
    const double line_seconds = touched_lines * 64 / (cpu.bytes_per_second * std::min(1.0, leaf.busy / 8));
    const double statement_seconds = leaf.statements / leaf.lanes * core_cycle;
    operations += statement_seconds;
    operations_scalar += leaf.vectorized ? 0 : leaf.statements * core_cycle;
    math_scalar += leaf.vectorized ? 0 : 4 * leaf.math * core_cycle;
    math_vector += leaf.vectorized ? 4 * leaf.math / cpu.lanes() * core_cycle : 0;
    integer += leaf.index / (leaf.vectorized ? std::max(1.0, leaf.width) : 1) * core_cycle;
    serial += leaf.workers <= 1 ? leaf.statements / cpu.clock_hz : 0;
    lines += touched_lines * core_cycle;
    chunk_starts += leaf.parallel ? leaf.workers : 0;
    floats += float_seconds;
    line_bytes += line_seconds;
    overlapped += std::max({float_seconds + math_seconds, line_seconds, statement_seconds});
    longest = std::max({longest, float_seconds + math_seconds, statement_seconds});
  }

  void add_shape(const Leaf& leaf) {
    parallel_leaves += leaf.parallel ? 1 : 0;
    runs += leaf.statements;
    parallel_weight += std::log2(std::max(leaf.workers, 1e-9)) * leaf.statements;
    vector_weight += std::log2(std::max(leaf.width, 1e-9)) * leaf.statements;
    least_parallel = std::min(least_parallel, leaf.workers);
    const double work = leaf.float_ops + 8 * leaf.math + 1e-6 * leaf.statements;
    if (!(work > heaviest)) return;
    heaviest = work;
    chunks = std::max(leaf.workers, 1.0);
    heavy_vector = leaf.width;
  }
};

Quantities<kLeafResources> leaf_resources(const LeafSums& sums, const target::CpuMachine& cpu) {
  Quantities<kLeafResources> seconds;
  seconds.set("statements", sums.operations);
  seconds.set("statements_scalar", sums.operations_scalar);
  seconds.set("math_vector", sums.math_vector);
  seconds.set("math_scalar", sums.math_scalar);
  seconds.set("bytes_reused", sums.reused / cpu.bytes_per_second);
  seconds.set("lines_reused", sums.reused_lines * 64 / cpu.bytes_per_second);
  seconds.set("bytes_unique", sums.unique / cpu.bytes_per_second);
  seconds.set("integer", sums.integer);
  seconds.set("parallel_starts", 5e-6 * std::max(1.0, sums.parallel_leaves));
  seconds.set("serial", sums.serial);
  seconds.set("lines", sums.lines);
  seconds.set("chunk_starts", sums.chunk_starts * 1e-7);
  seconds.set("floats", sums.floats);
  seconds.set("line_bytes", sums.line_bytes);
  seconds.set("overlapped", sums.overlapped);
  seconds.set("longest", sums.longest);
  return seconds;
}

}  // namespace

void summarize_cpu(const WorkloadAccess& access, const Tiles* tiles, const TraceSummary& trace,
                   const LeafFeatures& leaves, const target::Device& device, ProgramSummary& out) {
  const target::CpuMachine cpu(device);
  out.roofline_seconds = std::max({access.flops / cpu.flops_per_second,
                                   (access.input_bytes + access.output_bytes) / cpu.bytes_per_second, 1e-7});
  LeafSums sums;
  for (int l = 0; l < leaves.vectors.rows; ++l) sums.add(PerStoreRow(leaves.vectors.row(l)), cpu);
  add_resources(leaf_resources(sums, cpu), out);
  Quantities<kLeafColumns> columns;
  columns.set("parallel_mean", sums.parallel_weight / std::max(sums.runs, 1.0));
  columns.set("parallel_least", std::min(sums.least_parallel, 1e9));
  columns.set("vector_mean", sums.vector_weight / std::max(sums.runs, 1.0));
  columns.set("leaves", leaves.vectors.rows);
  columns.set("chunks", sums.chunks);
  columns.set("imbalance", std::ceil(sums.chunks / cpu.cores) / (sums.chunks / cpu.cores));
  columns.set("vector_heaviest", sums.heavy_vector);
  columns.set("vectorized", trace.vectorized);
  columns.set("attached", trace.attached);
  add_columns(columns, out);
  if (tiles != nullptr) summarize_tiles(TiledProduct(access, *tiles, trace, cpu, sums.chunks), out);
}

}  // namespace tensorsmith::feature
