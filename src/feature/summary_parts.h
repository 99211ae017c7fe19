// What the parts of program_summary share.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
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
  for (size_t i = 0; i < kColumns.size(); ++i) {
    double x = quantities.values()[i];
    if (kColumns[i].scale == Scale::kLog2) x = std::log2(std::max(x, 1e-30));
    out.columns.push_back(std::isfinite(x) ? x : 0);
  }
}

// Counts of a program's leaves with the logarithmic scale undone, added up unless it says otherwise.
struct LeafTotals {
  double float_ops = 0, math_ops = 0, int_ops = 0, int_divisions = 0, int_compares = 0, selects = 0;
  double runs = 0, most_runs = 0;  // of the statements
  double bytes = 0, lines = 0;
  double grid = 0, threads = 0;  // the largest blockIdx.x and threadIdx.x
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
};
// Extent of the region that a tile touches, by dimension. sizes: of the tile, by axis.
void touched_extents(const WorkloadAccess::Read& read, std::span<const double> spatial,
                     std::span<const double> reduce, std::vector<double>& out);
double touched_elements(const WorkloadAccess::Read& read, std::span<const double> spatial,
                        std::span<const double> reduce);
// Elements that lie side by side in memory: the innermost dimensions as far as they are touched whole.
double contiguous_elements(const std::vector<double>& extents, const std::vector<int64_t>& shape);

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
                         const LeafTotals& totals, const target::Device& device, ProgramSummary& out);
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
