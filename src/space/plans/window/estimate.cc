#include <algorithm>
#include <cmath>

#include "space/estimate/access.h"
#include "space/estimate/micro_kernel.h"
#include "space/estimate/parallel.h"
#include "space/estimate/plan_number.h"
#include "space/plans/window/window_plan.h"

namespace tensorsmith::space {

double WindowPlan::estimate(Decisions d, EstimateParts* parts) const {
  const auto& m = context_.machine;
  double tiles = 1, vectors = strip(d);  // `vectors`: of one tile
  for (const AxisId a : live_) {
    const double e = extent(a), t = tile_length(d, a);
    tiles *= std::ceil(e / t);
    if (a != vector_axis_) vectors *= t;
  }
  const Constants& k = m.fitted();
  double cycles = tiles * (tile_cycles(d, vectors) + k.window_tile), tail = 1;
  for (const AxisId a : live_) {
    if (a == vector_axis_) {
      tail *= tail_factor(m, extent(a), width(d) * strip(d), true, tail_of(d), k.tail_masked_window);
    } else {
      tail *= tail_factor(m, extent(a), tile(d, a), false, tail_of(d), k.tail_masked_window);
    }
  }
  cycles *= tail;
  const double traffic = traffic_cycles(d, tiles), padded = pad_cycles(d);
  if (parts != nullptr) {
    parts->plan = plan_number(PlanNumber::kWindow);
    parts->arithmetic = cycles * k.window_measured;
    parts->from_beyond = traffic;
    parts->moved = padded;
    parts->tiles = std::log2(tiles);
    parts->tail = std::log(tail);
    parts->peeled = tail_of(d) == sched::TailPolicy::kPeel ? 1 : 0;
    parts->accumulators = vectors;
    parts->lanes = static_cast<double>(width(d));
    parts->lane_share = parts->lanes / static_cast<double>(lanes_);
    parts->unrolled = std::log2(vectors * info_.reduce_points());
    double bytes = context_.stage(output_).spatial_points() * info_.element_bytes, rows = 1;
    for (const auto& read : reads_) {
      parts->loads += distinct_loads(read, d);
      bytes += read_bytes(info_, read);
      if (!read.strides.empty() && read.depends_on(vector_axis_) && std::abs(read.stride(vector_axis_)) > 1)
        parts->shuffles += 1;
    }
    for (const AxisId a : live_) rows *= a == vector_axis_ ? 1.0 : static_cast<double>(tile_length(d, a));
    parts->bytes = std::log2(bytes);
    parts->rows = std::log2(rows);
    double useful = 1;
    for (const AxisId a : live_) {
      const double whole = extent(a), length = tile_length(d, a);
      useful *= whole / (std::ceil(whole / length) * length);
    }
    parts->wasted = 1 - useful;
    for (size_t p = 0; p < pads_.size(); ++p)
      parts->buffered += location(d, p) != PadLocation::kInline ? 1 : 0;
    parts->row = std::log2(parts->lanes * static_cast<double>(strip(d)) * info_.element_bytes);
    parts->epilogue = anchor_ == output_ ? 0 : context_.stage(output_).flops_per_point;
    parts->reduced = std::log2(info_.reduce_points());
  }
  cycles = overlapped(cycles, traffic, k.not_hidden_blocks);
  ParallelLoop loop;
  size_t left = parallel(d);
  for (const AxisId a : live_) {
    if (left == 0) break;
    if (tile_length(d, a) >= extent(a)) continue;  // no outer loop
    loop.add_axis(extent(a), tile_length(d, a), tail_of(d) == sched::TailPolicy::kPeel);
    --left;
  }
  cycles += padded;
  // Measured times exceed the sum by this factor. The estimates of other plans for the same stage
  // have no such factor.
  cycles *= k.window_measured;
  if (parts != nullptr) set_loop_parts(loop, context_.threads(), *parts);
  return cycles * m.seconds_per_cycle() / loop.speedup(context_.threads()) +
         (loop.iterations() > 1 ? m.fork_seconds() : 0);
}

double WindowPlan::distinct_loads(const Read& read, Decisions d) const {
  AxisRanges ranges = tile_ranges(d);
  ranges[vector_axis_] = 1;
  double loads = 1;
  for (double touched : footprint(read, ranges)) loads *= touched;
  return loads;
}

double WindowPlan::tile_cycles(Decisions d, double vectors) const {
  const auto& m = context_.machine;
  const Constants& k = m.fitted();
  const double window = info_.reduce_points();
  const double arithmetic = vectors * window * std::max(1.0, info_.flops_per_point / 2);
  const double strips = strip(d);
  double loads = 0, other = 0, kept = 0;
  for (const auto& read : reads_) {
    const double distinct = distinct_loads(read, d);
    if (!read.depends_on(vector_axis_)) {
      loads += distinct;
      kept += std::min(window, distinct);
      continue;
    }
    const int64_t stride = read.strides.empty() ? 8 : read.strides[vector_axis_];
    const double v = width(d);
    // Neighbouring points of the window share the vectors from which strided ones are shuffled.
    const double distance = std::abs(stride);
    const double factor = distance <= 1 ? 1 : distance <= 4 ? distance * k.window_strided : v;
    loads += strips * distinct * factor * k.window_crossing;
    if (distance > 1) other += strips * distinct * (distance <= 4 ? distance - 1 : v);
    kept += std::min(window, distinct);
    bool inline_pad = read.guarded;
    for (size_t p = 0; p < pads_.size(); ++p)
      inline_pad = inline_pad || (pads_[p] == read.producer && location(d, p) == PadLocation::kInline);
    // Rows are guarded by selecting an address, columns by masks, which are constants if the row is
    // whole.
    if (inline_pad)
      other += distinct * (tile_length(d, vector_axis_) >= extent(vector_axis_) ? k.window_border_row
                                                                                : strips * k.window_border);
  }
  // Operands that do not stay in registers are loaded once for each use.
  const double excess = kept + k.window_registers - m.registers;
  if (excess > 0) loads = std::max(loads, std::min(arithmetic, loads + arithmetic * excess / kept));
  const double written =
      vectors * (1 + k.window_epilogue * (anchor_ == output_ ? 0 : context_.stage(output_).flops_per_point));
  // Each output is one chain of dependent operations, and the reorder buffer holds only so many of
  // them.
  const double chains = std::max(1.0, m.rates.reorder_buffer / (k.window_instructions * window));
  double cycles = std::max({arithmetic / m.fma_per_cycle, loads / m.rates.loads_per_cycle, other,
                            (arithmetic + loads + other + written) / m.rates.issue_per_cycle,
                            vectors * window * m.rates.fma_latency / chains});
  if (!m.masked_memory && (width(d) & (width(d) - 1)) != 0) cycles *= k.odd_lanes;
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
    const bool whole = touched.back() >= producer.row_extent();
    moved +=
        tiles * (elements * producer.element_bytes + (whole ? 1 : elements / touched.back()) * m.line_bytes);
  }
  return moved / stream_rate(m, bytes);
}

double WindowPlan::pad_cycles(Decisions d) const {
  const auto& m = context_.machine;
  double cycles = 0;
  for (size_t p = 0; p < pads_.size(); ++p) {
    if (location(d, p) == PadLocation::kInline) continue;
    const auto& pad = context_.stage(pads_[p]);
    if (location(d, p) == PadLocation::kRoot) {
      cycles += space::pad_cycles(m, pad.spatial_points(), pad.element_bytes, context_.threads());
      continue;
    }
    double tiles = 1;
    for (const AxisId a : live_) {
      const double e = extent(a), t = tile_length(d, a);
      tiles *= std::ceil(e / t);
    }
    for (const auto& read : reads_) {
      if (read.producer != pads_[p]) continue;
      const auto touched = footprint(read, tile_ranges(d));
      double rows = 1;
      for (double t : touched) rows *= t;
      rows /= std::max(1.0, touched.empty() ? 1 : touched.back());
      // The window's loads wait for stores that they only partly overlap.
      cycles +=
          tiles * (rows * std::ceil((touched.empty() ? 1 : touched.back()) / m.lanes(pad.element_bytes)) *
                       m.fitted().padded_vector_tile +
                   m.fitted().copy_tile);
    }
  }
  return cycles;
}

}  // namespace tensorsmith::space
