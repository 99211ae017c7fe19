// Columns of programs on GPUs. A wave is as many blocks as the multiprocessors can hold at a time.
// Operands A and B are the first and second read of the product.
#pragma once

#include "feature/schema.h"

namespace tensorsmith::feature {

// Tiles of a product in shared memory, with accumulators in registers. Unless stated otherwise, a
// resource is that of the busiest multiprocessor, including its idle lanes.
inline constexpr auto kTiledGpuResources = std::to_array<Column>({
    Column::resource("multiply_adds", "Multiply-adds of the busiest scheduler, which a warp has for itself."),
    Column::resource("dram", "What the waves read together, and the output, at memory bandwidth."),
    Column::resource("dram_once", "Inputs and output once, at memory bandwidth."),
    Column::resource("l2", "The sectors that fetches into shared memory touch, at the bandwidth of L2."),
    Column::resource("fetch_instructions", "A cycle for each fetch of 32 lanes."),
    Column::resource("fetch_words", "The words of these fetches on their way into shared memory."),
    Column::resource("fetch_transactions", "Half a cycle for each sector of these fetches."),
    Column::resource("guarded_fetches",
                     "The words of these fetches where operand A is read through windows."),
    Column::resource("shared_reads",
                     "Words that the tiles read from shared memory, all reads of a tile's product."),
    Column::resource("shared_conflicts", "Further rounds of these reads in the banks."),
    Column::resource("shared_distinct", "Words of each tile of a thread, what slides over a window once."),
    Column::resource("shared_distinct_thread",
                     "Words of all tiles of a thread, what slides over a window once."),
    Column::resource("stores", "A cycle for each store of 32 lanes."),
    Column::resource("store_sectors", "Half a cycle for each sector of these stores."),
    Column::resource("store_bytes", "The sectors of these stores at memory bandwidth."),
    Column::resource("fetch_latency", "The latency of memory for each step of each round of blocks."),
    Column::resource("fetch_latencies", "The latency of memory for each fetch of a thread in these steps."),
    Column::resource("shared_latency",
                     "The latency of shared memory for each step of the reduction in each round."),
    Column::resource("spill_issue", "Multiply-adds whose accumulators have no register."),
    Column::resource("spill_bytes", "Bytes of the accumulators without a register, at memory bandwidth."),
    Column::resource("operand_spills", "Multiply-adds where accumulators and operands exceed the registers."),
    Column::resource("operand_spill_share", "Multiply-adds times that excess."),
    Column::resource("accumulator_spills", "Multiply-adds where accumulators alone take most registers."),
    Column::resource("spills", "Multiply-adds where any accumulator has no register."),
    Column::resource("indexed_registers",
                     "Multiply-adds where a loop of more than 1024 copies indexes accumulators."),
    Column::resource("indexed_registers_large", "The same from 4096 copies on."),
    Column::resource("large_body", "Multiply-adds where more than 1024 copies of them are unrolled."),
    Column::resource("loop_control",
                     "A scheduler's cycle for each step of the loop around the unrolled copies."),
    Column::resource("launch", "Five microseconds for the kernel."),
    Column::resource("dispatch", "Three cycles of the device for each block."),
});

// Columns of one operand of the product.
inline constexpr auto kTiledGpuOperandFields = std::to_array<Column>({
    Column::log2("shared", "elements", "Elements of the block's tile of % in shared memory."),
    Column::log2("vector", "elements", "Vector length of the fetches of %."),
    Column::log2("sectors", "sectors", "Sectors per lane that a fetch of % touches."),
    Column::log2("lines", "cache lines", "Lines of 128 bytes per lane that a fetch of % touches."),
    Column::log2("run", "bytes", "Bytes side by side in memory in the block's tile of %."),
    Column::log2("fill", "elements", "Elements of % that a thread fetches in a step."),
    Column::log2("fill_use", "ratio", "Share of these fetches that is needed of %."),
    Column::log2("bank_rounds", "rounds", "Rounds that a warp's read of % takes in shared memory."),
    Column::log2("thread_tile", "elements", "Elements of % along the axes of all tiles of a thread."),
});

inline constexpr auto kTiledGpuColumns = concatenated(
    std::to_array<Column>({
        Column::log2("accumulators", "elements", "Outputs that a thread computes."),
        Column::log2("threads", "threads", "Threads of a block."),
        Column::log2("vthreads", "threads", "Virtual threads of a thread."),
        Column::log2("blocks", "blocks", "Blocks of the grid."),
        Column::log2("reduce_steps", "steps", "Times that a block fetches tiles."),
        Column::log2("reduce_tile", "iterations", "Reduction of one such step."),
        Column::log2("reduce_inner", "iterations", "Reduction of the innermost tile."),
    }),
    grouped_behind("_a", "operand A", kTiledGpuOperandFields),
    grouped_behind("_b", "operand B", kTiledGpuOperandFields),
    std::to_array<Column>({
        Column::log2("store_sectors_lane", "sectors", "Sectors per lane that a store touches."),
        Column::log2("shared_bytes", "bytes", "Shared memory of a block."),
        Column::log2("resident_blocks", "blocks", "Blocks of a multiprocessor at a time."),
        Column::log2("occupancy", "ratio", "Resident threads over those that fit."),
        Column::log2("rounds", "rounds", "Times that the busiest multiprocessor is filled with blocks."),
        Column::log2("tail", "ratio", "Its blocks over a fair share."),
        Column::log2("warp_use", "ratio", "Threads of a block over the lanes of its warps."),
        Column::log2("warps", "warps", "Warps of a block."),
        Column::log2("registers", "registers",
                     "Registers that a thread needs for outputs, operands, addresses."),
        Column::log2("register_limit", "registers", "Registers that the compiler may give a thread."),
        Column::log2("register_pressure", "ratio", "Registers needed over that limit."),
        Column::log2("accumulator_pressure", "ratio", "Outputs of a thread over that limit."),
        Column::log2("blocks_by_shared", "blocks", "Blocks that shared memory has room for."),
        Column::log2("reads_per_fma", "reads", "Reads of shared memory per multiply-add."),
        Column::log2("reads_per_fma_conflicts", "reads", "The same with the rounds of bank conflicts."),
        Column::log2("distinct_per_fma", "reads", "Different values of a tile per multiply-add."),
        Column::log2("distinct_per_fma_thread", "reads", "Different values of all tiles per multiply-add."),
        Column::log2("refetch", "ratio", "Bytes fetched over bytes of the inputs."),
        Column::log2("intensity_dram", "operations/byte", "Operations per byte that comes from memory."),
        Column::log2("intensity_block", "operations/byte", "Operations per byte that blocks fetch or store."),
        Column::log2("fmas_thread", "operations", "Multiply-adds of a thread."),
        Column::log2("threads_total", "threads", "Threads of the grid."),
        Column::log2("unrolled", "copies", "Copies of the multiply-add that are unrolled."),
        Column::log2("copies_inner", "copies", "Copies with the innermost spatial tile unrolled."),
        Column::log2("copies_reduce", "copies", "Copies with the innermost reduction unrolled too."),
        Column::log2("copies_tile", "copies", "Copies with the outer spatial tile unrolled too."),
        Column::log2("body", "copies", "Copies with all of a step unrolled."),
        Column::log2("unroll_room", "ratio", "Unrolling limit over the copies of the tile."),
        Column::log2("rest_spatial", "iterations", "Spatial iterations inside a step that are not unrolled."),
        Column::log2("rest_reduce", "iterations", "Reduce iterations inside a step that are not unrolled."),
        Column::log2("unroll_need", "ratio", "Copies of one virtual thread's tile over the unrolling limit."),
        Column::log2("operand_pressure", "ratio",
                     "Outputs and operands of all tiles over the register limit."),
        Column::log2("innermost_operand_pressure", "ratio",
                     "Outputs and operands of the innermost tile over the register limit."),
    }));

// Programs in which a thread computes one output or less.
inline constexpr auto kFlatGpuResources = std::to_array<Column>({
    Column::resource("bound", "The longest of dispatch, memory, latency and instructions, as a norm."),
    Column::resource("dispatch", "Three cycles of the device for each block of each kernel."),
    Column::resource("dram", "Inputs and outputs once, at memory bandwidth."),
    Column::resource("guards", "One integer comparison or select of a warp per scheduler and cycle."),
    Column::resource("launch", "Five microseconds for each kernel."),
    Column::resource("reduce_threads",
                     "One instruction of each warp per cycle where threads reduce together."),
    Column::resource("strided", "All accessed bytes at memory bandwidth where a thread reduces alone."),
    Column::resource("l2", "All accessed bytes at the bandwidth of L2."),
    Column::resource("lines", "All accessed cache lines at memory bandwidth."),
});
inline constexpr auto kFlatGpuColumns = std::to_array<Column>({
    Column::log2("threads", "threads", "Threads of a block."),
    Column::log2("blocks", "blocks", "Blocks of the grid."),
    Column::log2("resident_blocks", "blocks", "Blocks of a multiprocessor at a time."),
    Column::log2("occupancy", "ratio", "Resident threads over those that fit."),
    Column::log2("rounds", "rounds", "Times that the busiest multiprocessor is filled with blocks."),
    Column::log2("tail", "ratio", "Its blocks over a fair share."),
    Column::log2("warp_use", "ratio", "Threads of a block over the lanes of its warps."),
    Column::log2("warps", "warps", "Warps of a block."),
    Column::plain("kernels", "kernels", "Kernels of the program."),
    Column::plain("inlined", "stages", "Stages that are inlined."),
    Column::plain("reduce_threads", "threads", "Threads that reduce together, 0: none."),
    Column::log2("unroll", "copies", "Unrolling limit, plus 1."),
    Column::plain("leaves", "statements", "Statements of the program."),
    Column::log2("threads_second", "iterations", "Length of the second split, plus 1."),
    Column::log2("window", "runs", "Runs of the most frequent statement per output of four bytes."),
    Column::log2("inputs_per_output", "ratio", "Bytes of inputs over bytes of outputs."),
    Column::log2("threads_total", "threads", "Threads of the grid."),
    Column::log2("integer", "ratio", "Integer operations per executed statement."),
    Column::log2("divisions", "ratio", "Integer divisions per executed statement."),
    Column::log2("floats", "ratio", "Floating-point operations per executed statement."),
});

// Columns of the device, for every program on a GPU.
inline constexpr auto kGpuDeviceColumns = std::to_array<Column>({
    Column::device(
        Column::log2("device_cycles", "cycles/second", "Cycles of all multiprocessors per second.")),
    Column::device(Column::log2("device_bandwidth", "bytes/second", "Memory bandwidth.")),
    Column::device(Column::log2("device_l2", "bytes", "L2 cache.")),
    Column::device(Column::log2("device_balance", "operations/byte", "Peak rate over memory bandwidth.")),
});

}  // namespace tensorsmith::feature
