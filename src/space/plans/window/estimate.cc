#include <algorithm>
#include <cmath>

#include "space/estimate/access.h"
#include "space/estimate/parallel.h"
#include "space/plans/window/window_plan.h"

namespace tensorsmith::space {

double WindowPlan::estimate(Decisions d) const {
  const auto& m = context_.machine;
  double tiles = 1, vectors = static_cast<double>(strip(d));  // of one tile
  for (int a : live_) {
    const double e = static_cast<double>(extent(a)), t = static_cast<double>(tile_length(d, a));
    tiles *= std::ceil(e / t);
    if (a != vector_axis_) vectors *= t;
  }
  constexpr double kTileCycles = 8;  // loop, addresses, conditions of the border
  double cycles = tiles * (tile_cycles(d, vectors) + kTileCycles);
  for (int a : live_) {
    if (a == vector_axis_) {
      cycles *= tail_factor(extent(a), width(d) * strip(d), true, tail_of(d));
    } else {
      cycles *= tail_factor(extent(a), tile(d, a), false, tail_of(d));
    }
  }
  const double traffic = traffic_cycles(d, tiles);
  cycles = std::max(cycles, traffic) + 0.3 * std::min(cycles, traffic);
  ParallelLoop loop;
  size_t left = parallel(d);
  for (int a : live_) {
    if (left == 0) break;
    if (tile_length(d, a) >= extent(a)) continue;  // no outer loop
    loop.add_axis(static_cast<double>(extent(a)), static_cast<double>(tile_length(d, a)),
                  tail_of(d) == sched::TailPolicy::kPeel);
    --left;
  }
  cycles += pad_cycles(d);
  // What is added up here is more than is measured, and other plans of the same stage are estimated
  // exactly.
  constexpr double kMeasured = 0.7;
  cycles *= kMeasured;
  return cycles * m.seconds_per_cycle / loop.speedup(context_.threads) +
         (loop.iterations() > 1 ? m.fork_seconds : 0);
}

double WindowPlan::distinct_loads(const Read& read, Decisions d) const {
  std::vector<double> ranges = tile_ranges(d);
  ranges[static_cast<size_t>(vector_axis_)] = 1;
  double loads = 1;
  for (double touched : footprint(read, ranges)) loads *= touched;
  return loads;
}

double WindowPlan::tile_cycles(Decisions d, double vectors) const {
  const auto& m = context_.machine;
  const double window = info_.reduce_points();
  const double arithmetic = vectors * window * std::max(1.0, info_.flops_per_point / 2);
  const double strips = static_cast<double>(strip(d));
  double loads = 0, other = 0, kept = 0;
  for (const auto& read : reads_) {
    const double distinct = distinct_loads(read, d);
    if (!read.depends_on(vector_axis_)) {
      loads += distinct;
      kept += std::min(window, distinct);
      continue;
    }
    const int64_t stride = read.strides.empty() ? 8 : read.strides[static_cast<size_t>(vector_axis_)];
    const double v = static_cast<double>(width(d));
    // Half of the vectors lie across two cache lines.
    constexpr double kCrossing = 1.5;
    const double factor = std::abs(stride) <= 1 ? 1 : std::abs(stride) <= 4 ? std::abs(stride) * 0.7 : v;
    loads += strips * distinct * factor * kCrossing;
    if (std::abs(stride) > 1) other += strips * distinct * (std::abs(stride) <= 4 ? std::abs(stride) - 1 : v);
    kept += std::min(window, distinct);
    bool inline_pad = read.guarded;
    for (size_t p = 0; p < pads_.size(); ++p)
      inline_pad = inline_pad || (pads_[p] == read.producer && location(d, p) == PadLocation::kInline);
    // Rows are guarded by choosing an address; columns by masks, which are constants if the row is whole.
    if (inline_pad)
      other += distinct * (tile_length(d, vector_axis_) >= extent(vector_axis_) ? 0.5 : strips * 3);
  }
  // Operands that do not stay in registers are loaded once for each use.
  const double excess = kept + 4 - static_cast<double>(m.registers);
  if (excess > 0) loads = std::max(loads, std::min(arithmetic, loads + arithmetic * excess / kept));
  const double written =
      vectors * (1 + 0.5 * (anchor_ == output_ ? 0 : context_.stage(output_).flops_per_point));
  // Each output is one chain of dependent operations; a reorder buffer holds only so many of them.
  constexpr double kReorderBuffer = 320;
  const double chains = std::max(1.0, kReorderBuffer / (1.5 * window));
  double cycles = std::max({arithmetic / m.fma_per_cycle, loads / m.loads_per_cycle, other,
                            (arithmetic + loads + other + written) / m.issue_per_cycle,
                            vectors * window * m.fma_latency / chains});
  if (!m.masked_memory && (width(d) & (width(d) - 1)) != 0) cycles *= 2;
  return cycles + written / m.fma_per_cycle;
}

double WindowPlan::traffic_cycles(Decisions d, double tiles) const {
  const auto& m = context_.machine;
  const auto& out = context_.stage(output_);
  double bytes = out.spatial_points() * out.element_bytes, moved = 2 * bytes;
  for (const auto& read : reads_) {
    const auto& producer = context_.stage(read.producer);
    bytes += producer.spatial_points() * producer.element_bytes;
    if (!read.depends_on(vector_axis_)) continue;
    const auto touched = footprint(read, tile_ranges(d));
    double elements = 1;
    for (double t : touched) elements *= t;
    const bool whole = touched.back() >= static_cast<double>(producer.extents.back());
    moved += tiles * (elements * producer.element_bytes + (whole ? 1 : elements / touched.back()) * 64);
  }
  const double rate = bytes <= 0.75 * m.l2_bytes   ? m.l2_bytes_per_cycle
                      : bytes <= 0.75 * m.l3_bytes ? m.l3_bytes_per_cycle
                                                   : m.memory_bytes_per_cycle;
  return moved / rate;
}

double WindowPlan::pad_cycles(Decisions d) const {
  const auto& m = context_.machine;
  double cycles = 0;
  for (size_t p = 0; p < pads_.size(); ++p) {
    if (location(d, p) == PadLocation::kInline) continue;
    const auto& pad = context_.stage(pads_[p]);
    const double lanes = static_cast<double>(m.lanes(pad.element_bytes));
    if (location(d, p) == PadLocation::kRoot) {
      const double points = pad.spatial_points();
      cycles += points / lanes * 4 + points * pad.element_bytes * 2 / m.l3_bytes_per_cycle +
                (context_.threads > 1 ? m.fork_seconds / m.seconds_per_cycle * context_.threads : 0);
      continue;
    }
    double tiles = 1;
    for (int a : live_)
      tiles *= std::ceil(static_cast<double>(extent(a)) / static_cast<double>(tile_length(d, a)));
    for (const auto& read : reads_) {
      if (read.producer != pads_[p]) continue;
      const auto touched = footprint(read, tile_ranges(d));
      double rows = 1;
      for (double t : touched) rows *= t;
      rows /= std::max(1.0, touched.empty() ? 1 : touched.back());
      // The window's loads wait for stores that they only partly overlap.
      cycles += tiles * (rows * std::ceil((touched.empty() ? 1 : touched.back()) / lanes) * 5 + 15);
    }
  }
  return cycles;
}

}  // namespace tensorsmith::space
