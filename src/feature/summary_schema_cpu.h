// Columns of programs on CPUs. A chunk is one iteration of the parallel loop; a round is one chunk
// on every core.
#pragma once

#include "feature/schema.h"

namespace tensorsmith::feature {

// The statements of a program of another compiler, each with its own use of cores and lanes.
inline constexpr auto kLeafResources = std::to_array<Column>({
    Column::resource("statements", "Statements, one vector of them per cycle."),
    Column::resource("statements_scalar", "Statements that are not vectorized, one per cycle."),
    Column::resource("math_vector", "Function calls on vectors, four cycles each."),
    Column::resource("math_scalar", "Function calls on scalars, four cycles each."),
    Column::resource("bytes_reused",
                     "Accessed bytes divided by the number of their reuses, at memory bandwidth."),
    Column::resource("lines_reused",
                     "Accessed cache lines divided by the number of their reuses, at memory bandwidth."),
    Column::resource("bytes_unique", "Each byte once, at memory bandwidth."),
    Column::resource("integer", "Integer operations, one per cycle, and four cycles for a division."),
    Column::resource("parallel_starts", "Five microseconds for each parallel loop."),
    Column::resource("serial", "Statements outside parallel loops, one per cycle."),
    Column::resource("lines", "Accessed cache lines, one per cycle."),
    Column::resource("chunk_starts", "A tenth of a microsecond for each chunk."),
    Column::resource("floats", "Floating-point operations at the peak of the lanes used."),
    Column::resource("line_bytes",
                     "Accessed cache lines at memory bandwidth, of which one core reaches an eighth."),
    Column::resource(
        "overlapped",
        "Longest of the times of arithmetic, cache lines and execution of each statement, added up."),
    Column::resource("longest", "Longest time of arithmetic or execution of a single statement."),
});
inline constexpr auto kLeafColumns = std::to_array<Column>({
    Column::plain("parallel_mean", "log2(chunks)", "Mean of log2(chunks) over all executed statements."),
    Column::log2("parallel_least", "chunks", "Fewest chunks of a statement."),
    Column::plain("vector_mean", "log2(elements)",
                  "Mean of log2(vectorized length) over all executed statements."),
    Column::plain("leaves", "statements", "Statements of the program."),
    Column::log2("chunks", "chunks", "Chunks of the heaviest statement."),
    Column::log2("imbalance", "ratio", "Rounds of the heaviest statement over its chunks per core."),
    Column::log2("vector_heaviest", "elements", "Vectorized length of the heaviest statement."),
    Column::plain("vectorized", "loops", "Number of vectorized loops."),
    Column::plain("attached", "stages", "Stages that are computed inside a loop of another stage."),
});

// Additional columns for multi-level tiles of a product. The tile of a step is the middle tile, for
// one reduce step.
inline constexpr auto kTileResources = std::to_array<Column>({
    Column::resource("multiply_adds", "Multiply-adds of vectors, one per cycle."),
    Column::resource("multiply_adds_scalar", "Multiply-adds of scalars, one per cycle."),
    Column::resource("loads", "Loads and broadcasts, one per cycle."),
    Column::resource("fma_latency",
                     "Multiply-adds, slowed down by their latency if there are fewer than 8 accumulators."),
    Column::resource("spills", "Multiply-adds if the accumulators leave fewer than four registers."),
    Column::resource("kernel_starts", "Executions of the innermost tile, one per cycle."),
    Column::resource("accumulator_moves", "Loads and stores of accumulators, one pair per cycle."),
    Column::resource("tile_bytes_first", "Bytes of the innermost tile of operand A, at memory bandwidth."),
    Column::resource("step_bytes_first", "Bytes of the step's tile of operand A, at memory bandwidth."),
    Column::resource("step_bytes_second", "Bytes of the step's tile of operand B, at memory bandwidth."),
    Column::resource("step_bytes", "Bytes of the step's tile of both operands, 64 per cycle and core."),
    Column::resource("outer_bytes", "Bytes of the outer tile of both operands, 64 per cycle and core."),
    Column::resource(
        "l1_misses",
        "Bytes of the innermost tiles, 64 per cycle and core, if the step's tile exceeds 0.8 of L1."),
    Column::resource("l2_misses",
                     "Bytes of the steps' tiles, 64 per cycle and core, if the middle tile over the whole "
                     "reduction exceeds 0.8 of L2."),
    Column::resource("chunk_output", "Output of each chunk, 8 bytes per cycle and core."),
    Column::resource("chunk_bytes",
                     "Part of each chunk's inputs that fits in L2, 8 bytes per cycle and core."),
    Column::resource("chunk_bytes_beyond",
                     "Part of each chunk's inputs that does not fit in L2, 8 bytes per cycle and core."),
    Column::resource("dram", "Each byte of the inputs and outputs once, at memory bandwidth."),
    Column::resource("dram_in", "Each byte of the inputs once, at memory bandwidth."),
    Column::resource(
        "dram_large",
        "Inputs and outputs at memory bandwidth, times log2(their bytes over 128 MB) / 2, from 0 to 2."),
    Column::resource("start", "One microsecond, a constant."),
    Column::resource("rounds", "A tenth of a microsecond for each round."),
    Column::resource("cores_started", "One microsecond, times the share of the cores that have a chunk."),
});
inline constexpr auto kTileColumns = std::to_array<Column>({
    Column::log2("deep_tile", "bytes", "Input bytes of the middle tile over the whole reduction."),
    Column::log2("step_tile", "bytes", "Input bytes of the middle tile in a reduce step."),
    Column::log2("chunk_bytes", "bytes", "Input bytes of a chunk."),
    Column::log2("chunk_output", "bytes", "Output bytes of a chunk."),
    Column::log2("run_b", "bytes", "Contiguous bytes of the innermost tile of operand B."),
    Column::log2("copies_tile", "copies", "Multiply-adds of the middle tile in a reduce step."),
    Column::log2("unroll_room", "ratio",
                 "Unrolling limit over the multiply-adds of the middle tile in a reduce step."),
    Column::log2("rest_spatial", "iterations",
                 "Spatial iterations of the middle tile that are not unrolled."),
    Column::log2("outer", "iterations", "Middle tiles in an outer tile."),
    Column::log2("rounds", "iterations", "Number of outer tiles."),
    Column::log2("middle", "iterations", "Innermost tiles in a middle tile."),
    Column::log2("inner", "elements", "Outputs of the innermost tile."),
    Column::log2("row", "elements", "Length of the innermost tile along the last axis."),
    Column::log2("rows", "rows", "Product of the lengths of the innermost tile along the other axes."),
    Column::log2("accumulators", "vectors", "Vectors of outputs in the innermost tile."),
    Column::log2("loads_per_fma", "loads", "Loads and broadcasts per multiply-add of a vector."),
    Column::log2("reduce_inner", "iterations", "Iterations of the reduction in the innermost tile."),
    Column::log2("reduce_steps", "steps", "Number of reduce steps."),
    Column::log2("chunks_core", "rounds", "Rounds of the parallel loop."),
    Column::log2("chunk_repeats", "tiles", "Number of tiles in a chunk."),
});

// The statements of a program that Tensorsmith compiles. The tile of a statement is its unrolled and
// vectorized loops; the heaviest statement is the one with the longest bottleneck.
inline constexpr auto kNestResources = std::to_array<Column>({
    Column::resource("multiply_adds", "Multiply-adds of vectors at the rate of the FMA units."),
    Column::resource("others",
                     "Other vector arithmetic, at the mean of the rate of the FMA units and two per cycle."),
    Column::resource("selects", "Selects, at the rate of other arithmetic."),
    Column::resource("divisions", "Divisions, two elements per cycle."),
    Column::resource("calls",
                     "Function calls on vectors, 40 instructions each, at the rate of other arithmetic."),
    Column::resource("scalars", "Statements without vector lanes, one per cycle."),
    Column::resource("loads", "Loads of vectors, at the rate of the load ports."),
    Column::resource("broadcasts", "Broadcasts, two per cycle."),
    Column::resource("gathers", "Gathered elements, one per cycle."),
    Column::resource("stores", "Stores of vectors, at the rate of the store ports."),
    Column::resource("scatters", "Scattered elements, one per cycle."),
    Column::resource("latency",
                     "Latency of chains of multiply-adds: four cycles each, divided by the accumulators."),
    Column::resource("spills", "Loads and stores of accumulators that have no register, one per cycle."),
    Column::resource("tiles", "Executions of tiles, one per cycle."),
    Column::resource("windows", "Loads and stores of all accumulators of a tile, ten cycles each time."),
    Column::resource("instructions", "All instructions, at the rate that the core sustains."),
    Column::resource("code", "Instructions of a tile beyond the first 2000, one per cycle."),
    Column::resource("busiest", "Sum of the times of each statement's bottleneck."),
    Column::resource(
        "serial", "Sum of the bottlenecks of statements outside parallel loops, if there are several cores."),
    Column::resource("from_l2", "Bytes that L1 loads from L2, at the rate of L2."),
    Column::resource("from_l2_short",
                     "Bytes that L1 loads from L2 in short contiguous runs, at the rate of L2."),
    Column::resource("from_l3", "Bytes that L2 loads from the last-level cache, at its rate."),
    Column::resource("from_l3_short",
                     "Bytes that L2 loads from the last-level cache in short contiguous runs, at its rate."),
    Column::resource("to_l3", "Bytes that L2 writes to the last-level cache, at its rate."),
    Column::resource("from_memory", "Bytes that the last-level cache loads, at memory bandwidth."),
    Column::resource("from_memory_short",
                     "Bytes that the last-level cache loads in short contiguous runs, at memory bandwidth."),
    Column::resource("to_memory", "Bytes that the last-level cache writes, at memory bandwidth."),
    Column::resource(
        "parallel_starts",
        "Starting and joining threads for each execution of a parallel loop, if there are several cores."),
});
inline constexpr auto kNestColumns = std::to_array<Column>({
    Column::log2("flops_over_workload", "ratio", "Executed operations over those of the workload."),
    Column::log2("executed_flops", "operations", "Executed operations."),
    Column::log2("footprint", "bytes", "Bytes that the program touches."),
    Column::log2("footprint_l2", "ratio", "Bytes that the program touches over the size of L2."),
    Column::plain("leaves", "statements", "Statements of the program."),
    Column::plain("heavy_share", "ratio", "Share of the heaviest statement in the sum of all bottlenecks."),
    Column::log2("heavy_statements", "copies", "Copies of the heaviest statement in its tile."),
    Column::log2("heavy_vectors", "vectors", "Vectors of one copy of the heaviest statement."),
    Column::plain("heavy_lane_use", "ratio",
                  "Lanes that a vector of the heaviest statement uses, over those of the device."),
    Column::log2("heavy_accumulators", "vectors",
                 "Accumulator vectors that stay in registers over the loops around the tile."),
    Column::log2("heavy_window", "iterations",
                 "Iterations for which the accumulator vectors stay in registers."),
    Column::log2("heavy_runs", "runs", "Executions of the heaviest statement's tile."),
    Column::log2("heavy_reads_per_operation", "reads",
                 "Reads of the heaviest statement's tile over its arithmetic instructions."),
    Column::plain("heavy_gather_share", "ratio",
                  "Share of gathers in the reads of the heaviest statement's tile."),
    Column::plain("heavy_broadcast_share", "ratio",
                  "Share of broadcasts in the reads of the heaviest statement's tile."),
    Column::log2("heavy_register_pressure", "ratio",
                 "Accumulator vectors of the heaviest statement over the device's registers."),
    Column::plain("update", "flag", "1 if the heaviest statement reads what it writes."),
    Column::log2("chunks", "chunks", "Chunks of the heaviest statement."),
    Column::device(
        Column::log2("device_lanes", "elements", "Lanes of the device's vectors of 32-bit elements.")),
});

}  // namespace tensorsmith::feature
