// Declarations that the parts of program_summary share.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "feature/program_summary.h"
#include "feature/schema.h"
#include "target/machine.h"

namespace tensorsmith::feature {

// Append the quantities to a summary in the order of its schema.
template <const auto& kColumns>
void add_resources(const Quantities<kColumns>& seconds, ProgramSummary& out) {
  // A resource that cannot be computed, because the device file lacks a value, counts as 0.
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

// Counts of a program's leaves with the logarithmic scaling undone, summed unless stated otherwise.
struct LeafTotals {
  double float_ops = 0, math_ops = 0, int_ops = 0, int_divisions = 0, int_compares = 0, selects = 0;
  double runs = 0, most_runs = 0;  // executions: of all statements, of the most frequent one
  double bytes = 0, lines = 0;
  double grid = 0, threads = 0;                  // the largest extents of blockIdx.x and threadIdx.x
  std::vector<std::pair<double, double>> grids;  // the distinct pairs of these extents
  int leaves = 0;
};
LeafTotals total_leaves(const LeafFeatures& leaves);

// Assigns the blocks of a kernel to multiprocessors in rounds. All multiprocessors do the same, so
// the busiest one decides. Blocks are spread evenly: in a grid smaller than the device, each block
// has a multiprocessor for itself.
struct Rounds {
  // `room`: blocks that a multiprocessor can hold. `warps`: warps of a block.
  Rounds(double blocks, double room, double warps, const target::GpuMachine& gpu);
  double of_core;   // blocks of the busiest multiprocessor
  double resident;  // blocks of these that are resident at a time
  double count;     // times that the multiprocessor is filled
  double tail;      // its blocks divided by an even share of all blocks
  // Sums a quantity over the rounds; `of_blocks` returns it for the number of blocks in a round.
  template <class F>
  double sum(const F& of_blocks) const {
    return full_ * of_blocks(room_) + (last_ > 0 ? of_blocks(last_) : 0);
  }
  // Returns the warps that share a scheduler if `blocks` blocks are resident. A lone warp has one
  // scheduler for itself, and the others idle.
  double scheduler_warps(double blocks) const { return std::ceil(blocks * warps_ / schedulers_); }

 private:
  double room_, full_, last_, warps_, schedulers_;
};
// Returns the extents of the region that a tile touches, by dimension. `spatial` and `reduce` are
// the tile's sizes by axis.
ByAxis<double> touched_extents(const WorkloadAccess::Read& read, std::span<const double> spatial,
                               std::span<const double> reduce);
double touched_elements(const WorkloadAccess::Read& read, std::span<const double> spatial,
                        std::span<const double> reduce);
// Returns how many elements are contiguous in memory: the innermost dimensions as far as they are
// touched whole.
double contiguous_elements(std::span<const double> extents, std::span<const int64_t> shape);

// The result of unrolling loops around the innermost statement from the inside outwards, while the
// number of copies stays within `limit` (TVM's UnrollLoop with auto_max_step).
struct Unrolling {
  double copies = 1;        // copies of the statement in the code
  double rest_spatial = 1;  // iterations of the remaining spatial loops inside the outermost reduce level
  double rest_reduce = 1;   // iterations of the remaining reduce loops
};
struct UnrollLoop {
  double extent = 1;
  bool reduce = false;
};
// `loops`: innermost first. `copies`: copies of the statement before any unrolling (virtual
// threads).
Unrolling unroll_loops(double copies, std::span<const UnrollLoop> loops, double limit);

// Each function appends its resources and its own columns and sets the roofline. The caller appends
// the columns that all kinds share.
void summarize_tiled_gpu(const WorkloadAccess& access, const Tiles& tiles, const TraceSummary& trace,
                         const target::Device& device, ProgramSummary& out);
void summarize_flat_gpu(const WorkloadAccess& access, const TraceSummary& trace, const LeafTotals& totals,
                        const target::Device& device, ProgramSummary& out);
// `tiles` may be null.
void summarize_cpu(const WorkloadAccess& access, const Tiles* tiles, const TraceSummary& trace,
                   const LeafFeatures& leaves, const target::Device& device, ProgramSummary& out);
// Replays the trace on access.workload and lowers the schedule. Returns false and appends nothing
// if the trace does not fit the workload.
bool summarize_nests(const WorkloadAccess& access, const sched::Trace& trace, const target::Device& device,
                     ProgramSummary& out);
// Does the same with the schedule that the trace makes.
bool summarize_nests(const WorkloadAccess& access, const sched::Schedule& schedule,
                     const target::Device& device, ProgramSummary& out);

}  // namespace tensorsmith::feature
