// Columns of programs on CPUs. A chunk is one iteration of the parallel loop; a round is one chunk
// on every core.
#pragma once

#include "feature/schema.h"

namespace tensorsmith::feature {

// The statements of a program of another compiler, each with its own use of cores and lanes.
inline constexpr auto kLeafResources = std::to_array<Column>({
    Column::resource("statements", "One statement of a vector per cycle."),
    Column::resource("statements_scalar", "One statement per cycle where it is not vectorized."),
    Column::resource("math_vector", "Four cycles for a call of a function on a vector."),
    Column::resource("math_scalar", "Four cycles for a call of a function on a scalar."),
    Column::resource("bytes_reused", "Bytes over their reuse, at memory bandwidth."),
    Column::resource("lines_reused", "Cache lines over their reuse, at memory bandwidth."),
    Column::resource("bytes_unique", "Each byte once, at memory bandwidth."),
    Column::resource("integer", "One integer operation per cycle, four for a division."),
    Column::resource("parallel_starts", "Five microseconds for each parallel loop."),
    Column::resource("serial", "One statement per cycle where no loop is parallel."),
    Column::resource("lines", "One cache line per cycle."),
    Column::resource("chunk_starts", "A tenth of a microsecond for each chunk."),
    Column::resource("floats", "Floating-point operations at the peak of the lanes used."),
    Column::resource("line_bytes", "Cache lines at memory bandwidth, an eighth of it for one core."),
    Column::resource("overlapped", "The longest of floats, lines and statements, statement by statement."),
    Column::resource("longest", "Floats or statements of the longest statement."),
});
inline constexpr auto kLeafColumns = std::to_array<Column>({
    Column::plain("parallel_mean", "log2(chunks)", "Mean over all runs of log2 of the chunks."),
    Column::log2("parallel_least", "chunks", "Fewest chunks of a statement."),
    Column::plain("vector_mean", "log2(elements)", "Mean over all runs of log2 of the vectorized length."),
    Column::plain("leaves", "statements", "Statements of the program."),
    Column::log2("chunks", "chunks", "Chunks of the heaviest statement."),
    Column::log2("imbalance", "ratio", "Its rounds over its chunks per core."),
    Column::log2("vector_heaviest", "elements", "Its vectorized length."),
    Column::plain("vectorized", "loops", "Vectorized loops."),
    Column::plain("attached", "stages", "Stages computed at another one."),
});

// Additional columns for multi-level tiles of a product. The tile of a step is the middle tile, for
// one reduce step.
inline constexpr auto kTileResources = std::to_array<Column>({
    Column::resource("multiply_adds", "One multiply-add of a vector per cycle."),
    Column::resource("multiply_adds_scalar", "One multiply-add of a scalar per cycle."),
    Column::resource("loads", "One load or broadcast per cycle."),
    Column::resource("fma_latency", "Multiply-adds where fewer than 8 accumulators hide their latency."),
    Column::resource("spills", "Multiply-adds where the accumulators exceed the registers."),
    Column::resource("kernel_starts", "One start of the innermost tile per cycle."),
    Column::resource("accumulator_moves", "One load and store of an accumulator per cycle."),
    Column::resource("tile_bytes_first", "Bytes of the innermost tile of operand A, at memory bandwidth."),
    Column::resource("step_bytes_first", "Bytes of the step's tile of operand A, at memory bandwidth."),
    Column::resource("step_bytes_second", "Bytes of the step's tile of operand B, at memory bandwidth."),
    Column::resource("step_bytes", "Bytes of the step's tile of both, 64 per cycle and core."),
    Column::resource("outer_bytes", "Bytes of the outer tile of both, 64 per cycle and core."),
    Column::resource("l1_misses", "Bytes of the innermost tiles where the step's tile exceeds L1."),
    Column::resource("l2_misses", "Bytes of the steps' tiles where that of the whole reduction exceeds L2."),
    Column::resource("chunk_output", "Output of a chunk, 8 bytes per cycle and core."),
    Column::resource("chunk_bytes", "Inputs of a chunk as far as L2 holds them, 8 bytes per cycle and core."),
    Column::resource("chunk_bytes_beyond", "Inputs of a chunk beyond L2, 8 bytes per cycle and core."),
    Column::resource("dram", "Inputs and outputs once, at memory bandwidth."),
    Column::resource("dram_in", "Inputs once, at memory bandwidth."),
    Column::resource("dram_large", "Inputs and outputs where they exceed 128 MB, growing with log2."),
    Column::resource("start", "A microsecond."),
    Column::resource("rounds", "A tenth of a microsecond for each round."),
    Column::resource("cores_started", "A microsecond times the share of the cores that have a chunk."),
});
inline constexpr auto kTileColumns = std::to_array<Column>({
    Column::log2("deep_tile", "bytes", "Inputs of the middle tile over the whole reduction."),
    Column::log2("step_tile", "bytes", "Inputs of the middle tile in a reduce step."),
    Column::log2("chunk_bytes", "bytes", "Inputs of a chunk."),
    Column::log2("chunk_output", "bytes", "Output of a chunk."),
    Column::log2("run_b", "bytes", "Bytes side by side in the innermost tile of operand B."),
    Column::log2("copies_tile", "copies", "Multiply-adds of the middle tile in a reduce step."),
    Column::log2("unroll_room", "ratio", "Unrolling limit over these copies."),
    Column::log2("rest_spatial", "iterations",
                 "Spatial iterations of the middle tile that are not unrolled."),
    Column::log2("outer", "iterations", "Middle tiles in an outer tile."),
    Column::log2("rounds", "iterations", "Outer tiles."),
    Column::log2("middle", "iterations", "Innermost tiles in a middle tile."),
    Column::log2("inner", "elements", "Outputs of the innermost tile."),
    Column::log2("row", "elements", "Its length along the last axis."),
    Column::log2("rows", "rows", "Its length along the other axes."),
    Column::log2("accumulators", "vectors", "Vectors of outputs in the innermost tile."),
    Column::log2("loads_per_fma", "loads", "Loads and broadcasts per multiply-add of a vector."),
    Column::log2("reduce_inner", "iterations", "Reduction of the innermost tile."),
    Column::log2("reduce_steps", "steps", "Reduce steps."),
    Column::log2("chunks_core", "rounds", "Rounds of the parallel loop."),
    Column::log2("chunk_repeats", "tiles", "Tiles in a chunk."),
});

// The statements of a program that Tensorsmith compiles. The tile of a statement is its unrolled and
// vectorized loops; the heaviest statement is the one with the longest bottleneck.
inline constexpr auto kNestResources = std::to_array<Column>({
    Column::resource("multiply_adds", "Multiply-adds of vectors at the rate of the FMA units."),
    Column::resource("others",
                     "Other arithmetic at that rate, or where it is one per cycle at one and a half."),
    Column::resource("selects", "Selects like other arithmetic."),
    Column::resource("divisions", "Two elements of a division per cycle."),
    Column::resource("calls", "40 instructions like other arithmetic for a call of a function on a vector."),
    Column::resource("scalars", "One statement per cycle where there are no lanes."),
    Column::resource("loads", "Loads of vectors at the rate of the ports."),
    Column::resource("broadcasts", "Two broadcasts per cycle."),
    Column::resource("gathers", "One gathered element per cycle."),
    Column::resource("stores", "Stores of vectors at the rate of the ports."),
    Column::resource("scatters", "One scattered element per cycle."),
    Column::resource("latency", "Four cycles for a chain of multiply-adds, over the accumulators."),
    Column::resource("spills", "Moves of the accumulators that have no register."),
    Column::resource("tiles", "One run of a tile per cycle."),
    Column::resource("windows", "Ten cycles for each time that accumulators are loaded and stored."),
    Column::resource("instructions", "Instructions at the rate that the core sustains."),
    Column::resource("code", "Instructions of a tile beyond 2000, one per cycle."),
    Column::resource("busiest", "The bottleneck of each statement, added up."),
    Column::resource("serial", "The same of statements without a parallel loop, with several cores."),
    Column::resource("from_l2", "Bytes into L1, at the rate of L2."),
    Column::resource("from_l2_short", "Those of them that come in short runs."),
    Column::resource("from_l3", "Bytes into L2, at the rate of the last cache."),
    Column::resource("from_l3_short", "Those of them that come in short runs."),
    Column::resource("to_l3", "Bytes out of L2, at the rate of the last cache."),
    Column::resource("from_memory", "Bytes into the last cache, at memory bandwidth."),
    Column::resource("from_memory_short", "Those of them that come in short runs."),
    Column::resource("to_memory", "Bytes out of the last cache, at memory bandwidth."),
    Column::resource("parallel_starts",
                     "Starting and joining threads for each run of a parallel loop, with several cores."),
});
inline constexpr auto kNestColumns = std::to_array<Column>({
    Column::log2("flops_over_workload", "ratio", "Operations executed over those of the workload."),
    Column::log2("executed_flops", "operations", "Operations executed."),
    Column::log2("footprint", "bytes", "Bytes that the program touches."),
    Column::log2("footprint_l2", "ratio", "The same over L2."),
    Column::plain("leaves", "statements", "Statements of the program."),
    Column::plain("heavy_share", "ratio", "Share of the heaviest statement in all bottlenecks."),
    Column::log2("heavy_statements", "copies", "Copies of the heaviest statement in its tile."),
    Column::log2("heavy_vectors", "vectors", "Vectors of one of them."),
    Column::plain("heavy_lane_use", "ratio", "Lanes of one of these over those of the device."),
    Column::log2("heavy_accumulators", "vectors", "Vectors that stay in registers around the tile."),
    Column::log2("heavy_window", "iterations", "Iterations that they stay for."),
    Column::log2("heavy_runs", "runs", "Runs of the tile."),
    Column::log2("heavy_reads_per_operation", "reads", "Reads of the tile over its arithmetic instructions."),
    Column::plain("heavy_gather_share", "ratio", "Share of gathers in these reads."),
    Column::plain("heavy_broadcast_share", "ratio", "Share of broadcasts in these reads."),
    Column::log2("heavy_register_pressure", "ratio", "Accumulators over the device's registers."),
    Column::plain("update", "flag", "1 if the heaviest statement reads what it writes."),
    Column::log2("chunks", "chunks", "Chunks of the heaviest statement."),
    Column::device(
        Column::log2("device_lanes", "elements", "Lanes of the device's vectors of 32-bit elements.")),
});

}  // namespace tensorsmith::feature
