// CPU programs: cores kept busy, vector lanes used, footprints of tiles against the caches.
#include "feature/summary_parts.h"

namespace tensorsmith::feature {

namespace {

// Levels of a tiling: [rounds, outer, middle, inner]; the reduce axes [rounds, inner]. TVM's order of loops
// is S0 S1 R0 S2 R1 S3.
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

// What tiles need beyond the leaves' counts. chunks: of the parallel loop.
void summarize_tiles(const WorkloadAccess& access, const Tiles& tiles, const TraceSummary& trace,
                     const CpuFigures& cpu, double chunks, SummarySink& out) {
  const Levels t(tiles);
  const size_t last = t.inner.size() - 1;
  const double inner = product_of(t.inner), row = t.inner[last], rows = inner / row;
  const double reduce_inner = product_of(t.reduce_inner);
  const double outer_loops = product_of(t.rounds), tile_loops = outer_loops * product_of(t.outer);
  const double kernels = tile_loops * product_of(t.middle);  // runs of the innermost tile in a reduce step
  const double vectors = std::ceil(row / cpu.lanes), accumulators = rows * vectors;
  const double rounds = std::ceil(chunks / cpu.cores);
  const double cycle = rounds / chunks / cpu.clock_hz;  // of one core, for work that all chunks share
  const double fmas = access.flops / 2;
  const std::vector<double> middle = times(t.middle, t.inner), outer = times(t.outer, middle);

  // Loads of vectors and of broadcast values per multiply-add of a vector.
  const double loads = (vectors + rows) / (vectors * rows);
  const double vector_fmas = fmas / row * vectors * cycle;
  out.resource("multiply_adds", vector_fmas);
  out.resource("multiply_adds_scalar", fmas * cycle);
  out.resource("loads", vector_fmas * loads);
  out.resource("fma_latency", vector_fmas * std::max(1.0, 8 / accumulators));
  out.resource("spills", accumulators > cpu.registers - 4 ? vector_fmas : 0);
  out.resource("kernel_starts", kernels * t.reduce_steps * cycle);
  out.resource("accumulator_moves", kernels * t.reduce_steps * accumulators * cycle);

  // Bytes between levels of memory. A tile in cache is read again for each reduce step.
  const double kernel_bytes = bytes_of(access, t.inner, t.reduce_inner) * kernels * t.reduce_steps;
  const double step_tile = bytes_of(access, middle, t.reduce_inner);
  const double step_bytes = step_tile * tile_loops * t.reduce_steps;
  const double deep_tile = bytes_of(access, middle, t.reduce_whole);
  const double line_cycle = cycle / 64;  // 64 bytes a cycle and core
  out.resource("tile_bytes_first", 4 * touched_elements(access.reads[0], t.inner, t.reduce_inner) * kernels *
                                       t.reduce_steps / cpu.bytes_per_second);
  out.resource("step_bytes_first", 4 * touched_elements(access.reads[0], middle, t.reduce_inner) *
                                       tile_loops * t.reduce_steps / cpu.bytes_per_second);
  out.resource("step_bytes_second", 4 * touched_elements(access.reads[1], middle, t.reduce_inner) *
                                        tile_loops * t.reduce_steps / cpu.bytes_per_second);
  out.resource("step_bytes", step_bytes * line_cycle);
  out.resource("outer_bytes", bytes_of(access, outer, t.reduce_whole) * outer_loops * line_cycle);
  out.resource("l1_misses", step_tile > 0.8 * cpu.caches[0] ? kernel_bytes * line_cycle : 0);
  out.resource("l2_misses", deep_tile > 0.8 * cpu.caches[1] ? step_bytes * line_cycle : 0);

  // What a chunk of the parallel loop touches: it fuses the two outer levels, or the first.
  const bool fine = chunks >= 0.99 * tile_loops;
  const std::vector<double>& chunk_tile = fine ? middle : outer;
  const double repeats = std::max(1.0, (fine ? tile_loops : outer_loops) / chunks);
  const double chunk_bytes = bytes_of(access, chunk_tile, t.reduce_whole);
  const double chunk_output = 4 * product_of(chunk_tile);
  const double chunk_cycle = rounds * repeats / (8 * cpu.clock_hz);  // 8 bytes a cycle from the last level
  out.resource("chunk_output", chunk_output * chunk_cycle);
  out.resource("chunk_bytes", std::min(chunk_bytes, cpu.caches[1]) * chunk_cycle);
  out.resource("chunk_bytes_beyond", std::max(chunk_bytes - cpu.caches[1], 0.0) * chunk_cycle);
  const double bytes = access.input_bytes + access.output_bytes;
  out.resource("dram", bytes / cpu.bytes_per_second);
  out.resource("dram_in", access.input_bytes / cpu.bytes_per_second);
  out.resource("dram_large",
               bytes / cpu.bytes_per_second * std::clamp(std::log2(bytes / 1.28e8) / 2, 0.0, 2.0));
  out.resource("start", 1e-6);
  out.resource("rounds", rounds * 1e-7);
  out.resource("cores_started", 1e-6 * std::min(chunks, cpu.cores) / cpu.cores);

  std::vector<UnrollLoop> loops;
  for (size_t a = t.inner.size(); a-- > 0;) loops.push_back({t.inner[a], false});
  for (size_t a = t.reduce_inner.size(); a-- > 0;) loops.push_back({t.reduce_inner[a], true});
  for (size_t a = t.middle.size(); a-- > 0;) loops.push_back({t.middle[a], false});
  const Unrolling unrolling = unroll_loops(1, loops, trace.unroll);
  const double copies = inner * reduce_inner * product_of(t.middle);
  std::vector<double> extents;
  touched_extents(access.reads[1], t.inner, t.reduce_inner, extents);

  out.log_column("deep_tile", deep_tile);
  out.log_column("step_tile", step_tile);
  out.log_column("chunk_bytes", chunk_bytes);
  out.log_column("chunk_output", chunk_output);
  out.log_column("run_b", 4 * contiguous_elements(extents, access.reads[1].shape));
  out.log_column("copies_tile", copies);
  out.log_column("unroll_room", (trace.unroll + 1) / copies);
  out.log_column("rest_spatial", unrolling.rest_spatial);
  out.log_column("outer", product_of(t.outer));
  out.log_column("rounds", outer_loops);
  out.log_column("middle", product_of(t.middle));
  out.log_column("inner", inner);
  out.log_column("row", row);
  out.log_column("rows", rows);
  out.log_column("accumulators", accumulators);
  out.log_column("loads_per_fma", loads);
  out.log_column("reduce_inner", reduce_inner);
  out.log_column("reduce_steps", t.reduce_steps);
  out.log_column("chunks_core", rounds);
  out.log_column("chunk_repeats", repeats);
}

}  // namespace

void summarize_cpu(const WorkloadAccess& access, const Tiles* tiles, const TraceSummary& trace,
                   const LeafFeatures& leaves, const target::Device& device, SummarySink& out,
                   double& roofline_seconds) {
  const CpuFigures cpu(device);
  roofline_seconds = std::max({access.flops / cpu.flops_per_second,
                               (access.input_bytes + access.output_bytes) / cpu.bytes_per_second, 1e-7});
  // Each leaf on its own cores and lanes; their times add up.
  double operations = 0, operations_scalar = 0, math_scalar = 0, math_vector = 0, reused = 0;
  double reused_lines = 0, unique = 0, integer = 0, serial = 0, lines = 0, chunk_starts = 0;
  double floats = 0, line_bytes = 0, longest = 0, overlapped = 0;
  double parallel_leaves = 0, runs = 0, parallel_weight = 0, vector_weight = 0, least_parallel = 1e30;
  double heaviest = -1, chunks = 1, heavy_vector = 1;
  for (int l = 0; l < leaves.vectors.rows; ++l) {
    const auto row = leaves.vectors.row(l);
    const bool vectorized = row[16] > 0, parallel = row[38] > 0;
    const double statements = linear(row, 161);
    const double width = vectorized ? std::round(linear(row, 18)) : 1;
    const double workers = parallel ? std::round(linear(row, 39)) : 1;
    const double busy = workers >= 1 ? workers / std::ceil(workers / cpu.cores) : 1;
    const double lanes = vectorized ? std::max(1.0, std::min(width, cpu.lanes)) : 1;
    const double lane_use =
        vectorized && width > 0 ? width / std::ceil(width / cpu.lanes) / cpu.lanes : 1 / cpu.lanes;
    const double float_ops = linear(row, 1) + linear(row, 2) + linear(row, 3) + linear(row, 4);
    const double math = linear(row, 5) + linear(row, 6);
    const double index = linear(row, 8) + linear(row, 9) + 4 * linear(row, 10);
    double touched_lines = 0;
    for (int b = 0; b < 5; ++b) {
      reused += linear(row, 57 + 18 * b + 13);
      reused_lines += linear(row, 57 + 18 * b + 15);
      unique += linear(row, 57 + 18 * b + 4);
      touched_lines += linear(row, 57 + 18 * b + 5);
    }
    const double core_cycle = 1 / (cpu.clock_hz * busy);
    const double float_seconds = float_ops / (2 * cpu.fma * cpu.lanes * lane_use) * core_cycle;
    const double math_seconds = math / (0.5 * cpu.lanes * lane_use) * core_cycle;
    const double line_seconds = touched_lines * 64 / (cpu.bytes_per_second * std::min(1.0, busy / 8));
    const double statement_seconds = statements / lanes * core_cycle;
    operations += statement_seconds;
    operations_scalar += vectorized ? 0 : statements * core_cycle;
    math_scalar += vectorized ? 0 : 4 * math * core_cycle;
    math_vector += vectorized ? 4 * math / cpu.lanes * core_cycle : 0;
    integer += index / (vectorized ? std::max(1.0, width) : 1) * core_cycle;
    serial += workers <= 1 ? statements / cpu.clock_hz : 0;
    lines += touched_lines * core_cycle;
    chunk_starts += parallel ? workers : 0;
    floats += float_seconds;
    line_bytes += line_seconds;
    overlapped += std::max({float_seconds + math_seconds, line_seconds, statement_seconds});
    longest = std::max({longest, float_seconds + math_seconds, statement_seconds});
    parallel_leaves += parallel ? 1 : 0;
    runs += statements;
    parallel_weight += std::log2(std::max(workers, 1e-9)) * statements;
    vector_weight += std::log2(std::max(width, 1e-9)) * statements;
    least_parallel = std::min(least_parallel, workers);
    const double work = float_ops + 8 * math + 1e-6 * statements;
    if (work > heaviest) {
      heaviest = work;
      chunks = std::max(workers, 1.0);
      heavy_vector = width;
    }
  }
  out.resource("statements", operations);
  out.resource("statements_scalar", operations_scalar);
  out.resource("math_vector", math_vector);
  out.resource("math_scalar", math_scalar);
  out.resource("bytes_reused", reused / cpu.bytes_per_second);
  out.resource("lines_reused", reused_lines * 64 / cpu.bytes_per_second);
  out.resource("bytes_unique", unique / cpu.bytes_per_second);
  out.resource("integer", integer);
  out.resource("parallel_starts", 5e-6 * std::max(1.0, parallel_leaves));
  out.resource("serial", serial);
  out.resource("lines", lines);
  out.resource("chunk_starts", chunk_starts * 1e-7);
  out.resource("floats", floats);
  out.resource("line_bytes", line_bytes);
  out.resource("overlapped", overlapped);
  out.resource("longest", longest);

  out.column("parallel_mean", parallel_weight / std::max(runs, 1.0));
  out.log_column("parallel_least", std::min(least_parallel, 1e9));
  out.column("vector_mean", vector_weight / std::max(runs, 1.0));
  out.column("leaves", leaves.vectors.rows);
  out.log_column("chunks", chunks);
  out.log_column("imbalance", std::ceil(chunks / cpu.cores) / (chunks / cpu.cores));
  out.log_column("vector_heaviest", heavy_vector);
  out.column("vectorized", trace.vectorized);
  out.column("attached", trace.attached);
  if (tiles != nullptr) summarize_tiles(access, *tiles, trace, cpu, chunks, out);
}

}  // namespace tensorsmith::feature
