// Columns computed from counters of NVIDIA's GPUs, under Nsight Compute's names: those of "Cost
// Model for Tensor Programs" (tvm_oraa) except for those that reveal the latency. Counts are per
// million operations of the workload.
#pragma once

#include "feature/profile_schema.h"

namespace tensorsmith::feature {

inline constexpr auto kGpuProfileCounts = std::to_array<Column>({
    per_million("dram__bytes_read.sum", "Bytes read from memory."),
    per_million("dram__sectors_read.sum", "Sectors of 32 bytes read from memory."),
    per_million("dram__sectors_write.sum", "Sectors of 32 bytes written to memory."),
    per_million("sass__inst_executed_shared_loads", "Loads from shared memory."),
    per_million("sass__inst_executed_shared_stores", "Stores to shared memory."),
    per_million("smsp__inst_executed_op_ldsm.sum", "Loads of matrices from shared memory."),
    per_million("smsp__inst_executed_op_shared_atom.sum", "Atomic operations on shared memory."),
    per_million("smsp__inst_executed_op_global_red.sum", "Reductions in global memory."),
    per_million("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "Bank conflicts of shared memory."),
    per_million("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum",
                "Bank conflicts of atomic operations on shared memory."),
    per_million("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
                "Bank conflicts of loads from shared memory."),
    per_million("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
                "Bank conflicts of stores to shared memory."),
    per_million("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "Requests by loads from global memory."),
    per_million("sass__inst_executed_global_loads", "Loads from global memory."),
    per_million("sass__inst_executed_global_stores", "Stores to global memory."),
    per_million("smsp__sass_inst_executed_op_memory_128b.sum", "Accesses of 128 bits."),
    per_million("smsp__sass_inst_executed_op_memory_16b.sum", "Accesses of 16 bits."),
    per_million("smsp__sass_inst_executed_op_memory_32b.sum", "Accesses of 32 bits."),
    per_million("smsp__sass_inst_executed_op_memory_64b.sum", "Accesses of 64 bits."),
    per_million("sm__sass_inst_executed_op_ldgsts_cache_bypass.sum",
                "Copies to shared memory that bypass L1."),
    per_million("lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum", "Sectors read from L2 that it holds."),
    per_million("lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum",
                "Sectors read from L2 that it does not hold."),
});
inline constexpr auto kGpuProfileLaunch = std::to_array<Column>({
    Column::plain("occupancy_limit", "blocks",
                  "Blocks that a multiprocessor can hold: the smallest of all limits."),
    Column::amount("blocks_per_multiprocessor", "blocks", "Blocks of the launch over the multiprocessors."),
    Column::plain("block_share", "ratio", "Threads of a block over 256."),
    Column::amount("launch__waves_per_multiprocessor", "waves",
                   "Number of times that all multiprocessors are filled with blocks."),
});
inline constexpr auto kGpuProfileColumns = concatenated(kGpuProfileCounts, kGpuProfileLaunch);

Schema gpu_profile_schema();

// Like cpu_profile_row, but counters that a GPU lacks are 0, except for those of the launch, which
// are required, and a workload without operations counts as one operation.
Result<std::vector<float>> gpu_profile_row(const std::map<std::string, double>& counters, double operations);

}  // namespace tensorsmith::feature
