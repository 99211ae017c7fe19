// What the parts of program_summary share.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "feature/program_summary.h"
#include "feature/schema.h"
#include "target/assumed.h"
#include "target/target.h"

namespace tensorsmith::feature {

// Appends the quantities to a summary as its schema has them.
template <const auto& kColumns>
void add_resources(const Quantities<kColumns>& seconds, ProgramSummary& out) {
  // A resource that cannot be told (a figure of the device is missing) counts nothing.
  for (const double x : seconds.values()) out.resources.push_back(std::isfinite(x) && x > 0 ? x : 0);
}
template <const auto& kColumns>
void add_columns(const Quantities<kColumns>& quantities, ProgramSummary& out) {
  const auto& values = quantities.values();
  for (size_t i = 0; i < kColumns.size(); ++i) {
    double x = values[i];
    if (kColumns[i].scale == Scale::kLog2) x = std::log2(std::max(x, 1e-30));
    out.columns.push_back(std::isfinite(x) ? x : 0);
  }
}

// Counts of a program's leaves with the logarithmic scale undone, added up unless it says otherwise.
struct LeafTotals {
  double float_ops = 0, math_ops = 0, int_ops = 0, int_divisions = 0, int_compares = 0, selects = 0;
  double runs = 0, most_runs = 0;  // of the statements
  double bytes = 0, lines = 0;
  double grid = 0, threads = 0;                  // the largest blockIdx.x and threadIdx.x
  std::vector<std::pair<double, double>> grids;  // both, of each statement that has others than those before
  int leaves = 0;
};
LeafTotals total_leaves(const LeafFeatures& leaves);
inline constexpr int kMaxLanes = 64;  // of a warp

// What both kinds of GPU programs need of a device, with usual values for what a device file leaves out.
struct GpuFigures {
  explicit GpuFigures(const target::Device& device);
  double cores, clock_hz, bytes_per_second, flops_per_second, l2_bytes;
  double shared_bytes, registers, threads, blocks;  // of a multiprocessor
  double registers_per_thread, registers_per_block, threads_per_block;
  bool compiles_for_largest_block;
  int warp;
  double sector_bytes;                    // what memory and L2 hand over at least
  double schedulers;                      // of a multiprocessor
  double fma_lanes;                       // lanes whose multiply-adds a multiprocessor can start in a cycle
  double shared_lanes;                    // lanes that get a word of shared memory in a cycle
  double l2_per_second;                   // bytes, of all multiprocessors
  double shared_latency, memory_latency;  // seconds
  double cycle() const { return 1 / clock_hz; }
};

// Cycles of a device between the starts of two blocks. Elementwise kernels of many small blocks run at that rate, whatever their
// number of threads: 2.4 on a V100, 3.0 on a K80, 4.0 on an MI50, so a device that nobody has measured is taken for the middle one.
inline constexpr double kBlockStartCycles = 3;

// How the blocks of a kernel come to lie on the multiprocessors. All do the same, so the busiest multiprocessor decides, and few
// blocks share one with as few others: a grid smaller than the device leaves each block alone with a multiprocessor.
struct Rounds {
  // room: blocks that a multiprocessor can hold. warps: of a block.
  Rounds(double blocks, double room, double warps, const GpuFigures& gpu);
  double of_core;   // blocks of the busiest multiprocessor
  double resident;  // of these at a time
  double count;     // times that it is filled
  double tail;      // its blocks over a fair share of all
  // Sum over the rounds of a quantity of the blocks in one.
  template <class F>
  double sum(const F& of_blocks) const {
    return full_ * of_blocks(room_) + (last_ > 0 ? of_blocks(last_) : 0);
  }
  // Warps that share a scheduler with `blocks` blocks resident; a lone warp has one for itself, and the others idle.
  double scheduler_warps(double blocks) const { return std::ceil(blocks * warps_ / schedulers_); }

 private:
  double room_, full_, last_, warps_, schedulers_;
};
// Extent of the region that a tile touches, by dimension. sizes: of the tile, by axis.
ByAxis<double> touched_extents(const WorkloadAccess::Read& read, std::span<const double> spatial,
                               std::span<const double> reduce);
double touched_elements(const WorkloadAccess::Read& read, std::span<const double> spatial,
                        std::span<const double> reduce);
// Elements that lie side by side in memory: the innermost dimensions as far as they are touched whole.
double contiguous_elements(std::span<const double> extents, std::span<const int64_t> shape);

// What is unrolled of the innermost statement when loops are unrolled from the inside while the copies stay
// within `limit` (TVM's UnrollLoop with auto_max_step).
struct Unrolling {
  double copies = 1;        // of the statement, explicitly
  double rest_spatial = 1;  // iterations of the remaining loops inside the outermost reduce level
  double rest_reduce = 1;
};
struct UnrollLoop {
  double extent = 1;
  bool reduce = false;
};
// loops: innermost first. copies: of the statement before any unrolling (virtual threads).
Unrolling unroll_loops(double copies, std::span<const UnrollLoop> loops, double limit);

// Each puts its resources, its own columns and the roofline; what every kind has comes behind.
void summarize_tiled_gpu(const WorkloadAccess& access, const Tiles& tiles, const TraceSummary& trace,
                         const target::Device& device, ProgramSummary& out);
void summarize_flat_gpu(const WorkloadAccess& access, const TraceSummary& trace, const LeafTotals& totals,
                        const target::Device& device, ProgramSummary& out);
// tiles may be null.
void summarize_cpu(const WorkloadAccess& access, const Tiles* tiles, const TraceSummary& trace,
                   const LeafFeatures& leaves, const target::Device& device, ProgramSummary& out);
// Replays the trace on access.workload and lowers it. False, and nothing is put: the trace does not fit the
// workload.
bool summarize_nests(const WorkloadAccess& access, const sched::Trace& trace, const target::Device& device,
                     ProgramSummary& out);

// A CPU's figures, with those of a common one where the device does not say; caches: L1, L2 and last, bytes.
struct CpuFigures {
  explicit CpuFigures(const target::Device& device)
      : cores(std::max(device.cores, 1)),
        clock_hz((device.clock_ghz > 0 ? device.clock_ghz : target::kAssumedClockGhz) * 1e9),
        lanes(std::max(device.vector_bytes / 4, 1)),
        fma(device.fma_per_cycle > 0 ? device.fma_per_cycle : 1),
        bytes_per_second(
            (device.memory_bandwidth_gbs > 0 ? device.memory_bandwidth_gbs : target::kAssumedBandwidthGbs) *
            1e9),
        flops_per_second((device.peak_f32_gflops > 0 ? device.peak_f32_gflops : 100) * 1e9),
        registers(std::max(device.vector_registers, 8)),
        line(std::max(device.cacheline_bytes, 16)) {
    caches[0] = device.l1_bytes;
    caches[1] = device.l2_bytes;
    caches[2] = std::max(device.l3_bytes, device.l2_bytes);
  }
  double cores, clock_hz, lanes, fma, bytes_per_second, flops_per_second, registers, line;
  std::array<double, 3> caches;
};

}  // namespace tensorsmith::feature
