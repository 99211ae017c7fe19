// Columns of programs on GPUs. A wave is as many blocks as the multiprocessors can hold at a time.
// Operands A and B are the first and second read of the product.
#pragma once

#include "feature/schema.h"

namespace tensorsmith::feature {

// Tiles of a product in shared memory, with accumulators in registers. Unless stated otherwise, a
// resource is that of the busiest multiprocessor, including its idle lanes.
inline constexpr auto kTiledGpuResources = std::to_array<Column>({
    Column::resource("multiply_adds", "Multiply-adds of the busiest scheduler, which gets whole warps."),
    Column::resource(
        "dram",
        "Input bytes that the blocks of each wave read together, and the output, at memory bandwidth."),
    Column::resource("dram_once", "Each byte of the inputs and of the output once, at memory bandwidth."),
    Column::resource("l2", "Sectors touched by fetches into shared memory, at L2 bandwidth."),
    Column::resource("fetch_instructions", "One cycle for each fetch of 32 lanes into shared memory."),
    Column::resource("fetch_words", "Words of the fetches into shared memory, at its rate."),
    Column::resource("fetch_transactions", "Half a cycle for each sector of the fetches into shared memory."),
    Column::resource(
        "guarded_fetches",
        "Words of the fetches into shared memory, at its rate, if operand A is read through windows."),
    Column::resource("shared_reads",
                     "Words that the tiles read from shared memory, at its rate, without reuse between "
                     "overlapping windows."),
    Column::resource(
        "shared_conflicts",
        "Additional rounds of the reads from shared memory because of bank conflicts, at its rate."),
    Column::resource("shared_distinct",
                     "Words that each tile of a thread reads, at the rate of shared memory, with those "
                     "shared by overlapping windows counted once."),
    Column::resource("shared_distinct_thread",
                     "Words that all tiles of a thread read together, at the rate of shared memory, with "
                     "those shared by overlapping windows counted once."),
    Column::resource("stores", "One cycle for each store of 32 lanes."),
    Column::resource("store_sectors", "Half a cycle for each sector of the stores."),
    Column::resource("store_bytes", "Sectors of the stores, at memory bandwidth."),
    Column::resource("fetch_latency",
                     "Memory latency for each step of the reduction in each round of blocks."),
    Column::resource("fetch_latencies",
                     "Memory latency for each fetch of a thread, in each step of each round of blocks."),
    Column::resource("shared_latency",
                     "Latency of shared memory for each iteration of the reduction in each round of blocks."),
    Column::resource("spill_issue",
                     "Time of the multiply-adds, times the share of the accumulators without a register."),
    Column::resource("spill_bytes", "Bytes of the accumulators without a register, at memory bandwidth."),
    Column::resource(
        "operand_spills",
        "8 times the multiply-adds if accumulators and operands exceed 1.13 times the registers."),
    Column::resource("operand_spill_share",
                     "16 times the multiply-adds, times the share by which accumulators and operands exceed "
                     "1.05 times the registers, at most 0.5."),
    Column::resource(
        "accumulator_spills",
        "8 times the multiply-adds if the accumulators alone take more than 0.8 of the registers."),
    Column::resource("spills", "8 times the multiply-adds if any accumulator has no register."),
    Column::resource("indexed_registers",
                     "8 times the multiply-adds if a loop indexes accumulators and a thread has more than "
                     "1024 of them in a step."),
    Column::resource("indexed_registers_large",
                     "8 times the multiply-adds if a loop indexes accumulators and a thread has more than "
                     "4096 of them in a step."),
    Column::resource(
        "large_body",
        "8 times the multiply-adds if the innermost reduction of a thread has more than 1024 of them."),
    Column::resource("loop_control",
                     "One cycle of a scheduler for each iteration of the loop around the unrolled copies."),
    Column::resource("launch", "Five microseconds for the kernel launch."),
    Column::resource("dispatch", "Three clock cycles for each block."),
});

// Columns of one operand of the product.
inline constexpr auto kTiledGpuOperandFields = std::to_array<Column>({
    Column::log2("shared", "elements", "Elements of the block's tile of %, in shared memory."),
    Column::log2("vector", "elements", "Vector length of the fetches of %."),
    Column::log2("sectors", "sectors", "Sectors per lane that a fetch of % touches."),
    Column::log2("lines", "cache lines", "Lines of 128 bytes per lane that a fetch of % touches."),
    Column::log2("run", "bytes", "Contiguous bytes of the block's tile of % in device memory."),
    Column::log2("fill", "elements", "Elements of % that a thread fetches in a step."),
    Column::log2("fill_use", "ratio", "Share of the elements of % fetched by all threads that is needed."),
    Column::log2("bank_rounds", "rounds",
                 "Rounds that a warp's read of % from shared memory takes because of its banks."),
    Column::log2("thread_tile", "elements", "Elements of % along the axes of all tiles of a thread."),
});

inline constexpr auto kTiledGpuColumns = concatenated(
    std::to_array<Column>({
        Column::log2("accumulators", "elements", "Outputs that a thread computes."),
        Column::log2("threads", "threads", "Threads of a block."),
        Column::log2("vthreads", "threads", "Virtual threads of a thread."),
        Column::log2("blocks", "blocks", "Blocks of the grid."),
        Column::log2("reduce_steps", "steps", "Steps of the reduction in which a block fetches tiles."),
        Column::log2("reduce_tile", "iterations", "Iterations of the reduction in one step."),
        Column::log2("reduce_inner", "iterations", "Iterations of the reduction in the innermost tile."),
    }),
    grouped_behind("_a", "operand A", kTiledGpuOperandFields),
    grouped_behind("_b", "operand B", kTiledGpuOperandFields),
    std::to_array<Column>({
        Column::log2("store_sectors_lane", "sectors", "Sectors per lane that a store touches."),
        Column::log2("shared_bytes", "bytes", "Shared memory of a block."),
        Column::log2("resident_blocks", "blocks", "Blocks that a multiprocessor runs at the same time."),
        Column::log2("occupancy", "ratio", "Resident threads of a multiprocessor over the most it can hold."),
        Column::log2("rounds", "rounds", "Times that the busiest multiprocessor is filled with blocks."),
        Column::log2("tail", "ratio",
                     "Blocks of the busiest multiprocessor over the mean of all multiprocessors."),
        Column::log2("warp_use", "ratio", "Threads of a block over the lanes of its warps."),
        Column::log2("warps", "warps", "Warps of a block."),
        Column::log2("registers", "registers",
                     "Registers that a thread needs for outputs, operands and addresses."),
        Column::log2("register_limit", "registers", "Registers that the compiler may give a thread."),
        Column::log2("register_pressure", "ratio",
                     "Registers needed over those that the compiler may give a thread."),
        Column::log2("accumulator_pressure", "ratio",
                     "Outputs of a thread over the registers that the compiler may give it."),
        Column::log2("blocks_by_shared", "blocks",
                     "Blocks for which a multiprocessor has enough shared memory."),
        Column::log2("reads_per_fma", "reads", "Reads of shared memory per multiply-add."),
        Column::log2("reads_per_fma_conflicts", "reads",
                     "Reads of shared memory per multiply-add, times the rounds that bank conflicts cause."),
        Column::log2("distinct_per_fma", "reads", "Different values of a tile per multiply-add."),
        Column::log2("distinct_per_fma_thread", "reads", "Different values of all tiles per multiply-add."),
        Column::log2("refetch", "ratio", "Bytes fetched over bytes of the inputs."),
        Column::log2("intensity_dram", "operations/byte",
                     "Operations per byte that is read from or written to device memory."),
        Column::log2("intensity_block", "operations/byte", "Operations per byte that blocks fetch or store."),
        Column::log2("fmas_thread", "operations", "Multiply-adds of a thread."),
        Column::log2("threads_total", "threads", "Threads of the grid."),
        Column::log2("unrolled", "copies", "Copies of the multiply-add that are unrolled."),
        Column::log2("copies_inner", "copies",
                     "Copies of the multiply-add if the innermost spatial tile is unrolled."),
        Column::log2("copies_reduce", "copies",
                     "Copies of the multiply-add if the innermost reduction is unrolled, too."),
        Column::log2("copies_tile", "copies",
                     "Copies of the multiply-add if the outer spatial tile is unrolled, too."),
        Column::log2("body", "copies",
                     "Copies of the multiply-add if a whole step of the reduction is unrolled."),
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
    Column::resource(
        "bound",
        "Smooth maximum (norm of order 4) of the times of dispatch, memory, latency and instructions."),
    Column::resource("dispatch", "Three clock cycles for each block of each kernel."),
    Column::resource("dram", "Each byte of the inputs and outputs once, at memory bandwidth."),
    Column::resource("guards", "Integer comparisons and selects, one of a warp per scheduler and cycle."),
    Column::resource("launch", "Five microseconds for the launch of each kernel."),
    Column::resource("reduce_threads",
                     "One cycle for each warp of a multiprocessor if threads reduce together."),
    Column::resource("strided",
                     "All accessed bytes at memory bandwidth if each thread of a reduction reduces alone."),
    Column::resource("l2", "All accessed bytes at L2 bandwidth."),
    Column::resource("lines", "All accessed cache lines at memory bandwidth."),
});
inline constexpr auto kFlatGpuColumns = std::to_array<Column>({
    Column::log2("threads", "threads", "Threads of a block."),
    Column::log2("blocks", "blocks", "Blocks of the grid."),
    Column::log2("resident_blocks", "blocks", "Blocks that a multiprocessor runs at the same time."),
    Column::log2("occupancy", "ratio", "Resident threads of a multiprocessor over the most it can hold."),
    Column::log2("rounds", "rounds", "Times that the busiest multiprocessor is filled with blocks."),
    Column::log2("tail", "ratio",
                 "Blocks of the busiest multiprocessor over the mean of all multiprocessors."),
    Column::log2("warp_use", "ratio", "Threads of a block over the lanes of its warps."),
    Column::log2("warps", "warps", "Warps of a block."),
    Column::plain("kernels", "kernels", "Kernels of the program."),
    Column::plain("inlined", "stages", "Inlined stages."),
    Column::plain("reduce_threads", "threads", "Threads that reduce together; 0 if none do."),
    Column::log2("unroll", "copies", "Unrolling limit, plus 1."),
    Column::plain("leaves", "statements", "Statements of the program."),
    Column::log2("threads_second", "iterations", "Length of the second split, plus 1."),
    Column::log2("window", "runs", "Executions of the most frequent statement per output of four bytes."),
    Column::log2("inputs_per_output", "ratio", "Bytes of inputs over bytes of outputs."),
    Column::log2("threads_total", "threads", "Threads of the grid."),
    Column::log2("integer", "ratio", "Integer operations per executed statement."),
    Column::log2("divisions", "ratio", "Integer divisions per executed statement."),
    Column::log2("floats", "ratio", "Floating-point operations per executed statement."),
});

// Columns of the device, for every program on a GPU.
inline constexpr auto kGpuDeviceColumns = std::to_array<Column>({
    Column::device(
        Column::log2("device_cycles", "cycles/second", "Clock cycles of all multiprocessors per second.")),
    Column::device(Column::log2("device_bandwidth", "bytes/second", "Memory bandwidth.")),
    Column::device(Column::log2("device_l2", "bytes", "Size of the L2 cache.")),
    Column::device(Column::log2("device_balance", "operations/byte",
                                "Peak rate of floating-point operations over memory bandwidth.")),
});

}  // namespace tensorsmith::feature
