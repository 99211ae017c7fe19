// Columns computed from a profiler's counters for a program (record/profile.h, docs/profiles.md).
// Counts are per million operations of the workload, which makes workloads of any size comparable.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "feature/schema.h"

namespace tensorsmith::feature {

// Version of these columns; models store it.
inline constexpr int kProfileVersion = 1;

inline constexpr std::string_view kPerMillion = "per 10^6 operations";

// A column for the counter of the same name.
constexpr Column per_million(std::string_view name, std::string_view sentence) {
  return Column::amount(name, kPerMillion, sentence);
}

// Counters of the simulation of a CPU (measure/profile/simulate.h).
inline constexpr auto kCpuProfileCounts = std::to_array<Column>({
    per_million("instructions", "Instructions executed."),
    per_million("fma", "Fused multiply-adds and dot products on vectors."),
    per_million("arithmetic", "Other arithmetic and logic on vectors."),
    per_million("scalar_float", "Floating-point arithmetic on single elements."),
    per_million("divisions", "Divisions and square roots."),
    per_million("shuffles", "Instructions that move elements between lanes or between kinds of registers."),
    per_million("moves", "Moves of vectors from and to memory and between registers."),
    per_million("masks", "Instructions on mask registers."),
    per_million("integer", "Integer instructions, most of them for indices and addresses."),
    per_million("branches", "Branches, calls and returns."),
    per_million("prefetches", "Software prefetches."),
    per_million("loads", "Operands read from memory, without broadcasts and reloads."),
    per_million("broadcasts", "Loads of one element into all lanes."),
    per_million("gathers", "Gathers and scatters."),
    per_million("stores", "Operands written to memory, without spills."),
    per_million("spills", "Registers written to the stack, because there are too few."),
    per_million("reloads", "Registers read back from the stack."),
    per_million("chain",
                "Floating-point operations on the longest chain in which each waits for the result of the "
                "previous one."),
    per_million("accesses", "Accesses to buffers and to the stack by the program's own loads and stores."),
    per_million("bytes_loaded", "Bytes loaded."),
    per_million("bytes_stored", "Bytes stored."),
    per_million("split_accesses", "Accesses that touch two cache lines."),
    per_million("tlb.misses", "Accesses to a page that a TLB of 64 entries does not hold."),
    per_million("l1.misses", "Accesses to lines that L1 does not hold."),
    per_million("l1.misses_in_order",
                "Misses of L1 at the line after the last one that the same instruction missed."),
    per_million("l1.written_back", "Lines that L1 writes to L2."),
    per_million("l2.misses", "Accesses to lines that L1 and L2 do not hold."),
    per_million("l2.misses_in_order",
                "Misses of L2 at the line after the last one that the same instruction missed."),
    per_million("l2.written_back", "Lines that L2 writes to L3."),
    per_million("l3.misses", "Accesses to lines that no cache holds."),
    per_million("l3.misses_in_order",
                "Misses of L3 at the line after the last one that the same instruction missed."),
    per_million("l3.written_back", "Lines that L3 writes to memory."),
});
inline constexpr auto kCpuProfileRatios = std::to_array<Column>({
    Column::plain("vector_bytes", "bytes", "Mean width of the registers of vector arithmetic."),
    Column::plain("float_share", "ratio", "Vector arithmetic over all instructions."),
    Column::plain("memory_share", "ratio", "Operands in memory over vector arithmetic."),
    Column::plain("spill_share", "ratio", "Spills and reloads over all operands in memory."),
    Column::plain("chain_share", "ratio",
                  "Operations of the longest dependent chain over vector arithmetic."),
    Column::plain("l1.miss_share", "ratio", "Misses of L1 over accesses."),
    Column::plain("l2.miss_share", "ratio", "Misses of L2 over those of L1."),
    Column::plain("l3.miss_share", "ratio", "Misses of L3 over those of L2."),
    Column::plain("l1.in_order_share", "ratio", "Share of the misses of L1 that are in order."),
    Column::plain("l2.in_order_share", "ratio", "Share of the misses of L2 that are in order."),
    Column::amount("hot_code", "instructions",
                   "Instructions of the code that account for 0.95 of the executed ones."),
    Column::amount("workspace_bytes", "bytes", "Memory for intermediate results."),
});
inline constexpr auto kCpuProfileColumns = concatenated(kCpuProfileCounts, kCpuProfileRatios);

Schema cpu_profile_schema();

// Returns the row for the counters. `operations` are those of the workload as its records count
// them; if there are none, a quarter of the bytes of its buffers is used. kInvalidArgument names a
// missing counter.
Result<std::vector<float>> cpu_profile_row(const std::map<std::string, double>& counters, double operations);

}  // namespace tensorsmith::feature
