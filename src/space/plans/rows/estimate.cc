#include <algorithm>
#include <cmath>

#include "space/estimate/access.h"
#include "space/estimate/micro_kernel.h"
#include "space/estimate/parallel.h"
#include "space/estimate/plan_number.h"
#include "space/plans/rows/rows_plan.h"

namespace tensorsmith::space {

RowsPlan::Traffic RowsPlan::traffic_cycles(Decisions d) const {
  const auto& m = context_.machine;
  const Constants& k = m.fitted();
  const auto is_member = [&](StageId stage) {
    return std::any_of(members_.begin(), members_.end(),
                       [&](const Member& member) { return member.stage == stage; });
  };
  double rows = 1;  // passes of the loops over rows
  for (const AxisId a : rows_) rows *= info_.extent(a);
  if (contiguous_row_) rows /= std::max<int64_t>(row_width(d), 1);
  Traffic out;
  double once = 0;  // bytes
  std::vector<StageId> seen;
  for (const auto& member : members_) {
    const auto& stage = context_.stage(member.stage);
    for (const Read& read : effective_reads(context_, member.stage)) {
      if (is_member(read.producer)) continue;
      const auto& producer = context_.stage(read.producer);
      const double bytes = read_bytes(stage, read);
      if (std::find(seen.begin(), seen.end(), read.producer) != seen.end()) continue;
      seen.push_back(read.producer);
      once += bytes;
      // Weights come through all levels, as in the estimate of tiles (space/plans/tiled/traffic.cc).
      if (producer.constant && stage.reduction)
        out.streamed += bytes / m.rates.l3_bytes_per_cycle + bytes / m.memory_bytes_per_cycle();
      if (!read.affine || !stage.reduction) continue;
      bool shared = true;  // by all rows
      for (const AxisId a : stage.axes())
        if (!stage.is_reduce(a) && member.to_output[a].valid() &&
            std::find(rows_.begin(), rows_.end(), member.to_output[a]) != rows_.end())
          shared = shared && !read.depends_on(a);
      if (shared && bytes > k.usable * m.l1_bytes) {
        // This data also evicts what comes from memory, so nothing hides it.
        out.streamed += rows * bytes / stream_rate(m, bytes);
        out.waited += rows * bytes / stream_rate(m, bytes);
      } else if (contiguous_row_ && !shared && bytes > k.usable_once * m.l2_bytes) {
        // A strip of columns: a piece of each row.
        const AxisId last = producer.contiguous_axis;
        double distance = producer.element_bytes;
        if (last.valid()) distance *= producer.extent(last);
        if (distance >= kPageBytes)
          out.waited +=
              bytes / (static_cast<double>(row_width(d)) * producer.element_bytes) * k.row_start_beyond;
      }
    }
  }
  out.streamed += once / stream_rate(m, once, k.usable_once);
  out.once = once;
  return out;
}

double RowsPlan::estimate(Decisions d, EstimateParts* parts) const {
  const auto& m = context_.machine;
  const Constants& k = m.fitted();
  double cycles = 0;
  double inlined = 0;
  const double full = lanes_;
  for (const auto& member : members_) {
    const auto& stage = context_.stage(member.stage);
    const double points = stage.spatial_points() * stage.reduce_points();
    // Cycles per point: of the arithmetic in vectors of `width`, and of reads that gather.
    double width = 1, extra = 0, gathers = 0;
    const double flops = stage.flops_per_point + 1;
    if (contiguous_row_) {
      width = std::min(row_width(d), lanes_);
      const double rows = row_width(d);
      for (const auto& read : effective_reads(context_, member.stage))
        gathers += (read.affine ? read_cycles(m, stride_along_rows(member, read), rows, full)
                                : rows * k.gathered_element) /
                   rows;
      // One chain of dependent operations for each vector of rows.
      if (stage.reduction) gathers = std::max(gathers, m.rates.fma_latency / rows - flops / width);
    } else if (!stage.reduction) {
      width = std::min(full, stage.spatial_points());
    } else {
      // Each addition to an accumulator waits for the one before. The accumulators of a row, and rows that
      // are in flight together, hide the wait; then the lanes of a row are added up by halving.
      const bool factored = member.factor_slot != kNone && category(d, member.factor_slot) > 0;
      const double factor = factored ? factor_of(member, category(d, member.factor_slot)) : 1;
      width = std::min(factor, full);
      const double instructions = stage.reduce_points() / width * flops + k.halving * std::log2(full);
      const double chains = std::max(factor / full, 1.0) *
                            std::max(k.overlapped_rows * m.rates.reorder_buffer / instructions, 1.0);
      width /= std::max(1.0, m.fma_per_cycle * m.rates.fma_latency / (chains * flops));
      if (factored)
        extra = stage.spatial_points() * (factor / full + k.halving * std::log2(std::min(factor, full)));
    }
    if (member.inline_slot != kNone && category(d, member.inline_slot) == 1) {
      inlined += stage.flops_per_point * stage.consumers.size() * points / full;
      continue;
    }
    cycles += points * (flops / width + gathers) + extra;
  }
  cycles += inlined;
  const Traffic traffic = traffic_cycles(d);
  if (parts != nullptr) {
    parts->plan = plan_number(PlanNumber::kRows);
    parts->arithmetic = cycles;
    parts->from_beyond = traffic.streamed;
    parts->waited = traffic.waited;
    parts->lanes = contiguous_row_ ? static_cast<double>(row_width(d)) : full;
    for (const auto& member : members_) {
      if (member.inline_slot != kNone) parts->buffered += category(d, member.inline_slot) == 1 ? 0 : 1;
      if (member.factor_slot != kNone)
        parts->accumulators += static_cast<double>(factor_of(member, category(d, member.factor_slot))) / full;
    }
    parts->epilogue = info_.flops_per_point;
    parts->bytes = std::log2(std::max(1.0, traffic.once));
    parts->row = info_.contiguous_axis.valid()
                     ? std::log2(static_cast<double>(info_.extent(info_.contiguous_axis)))
                     : 0;
    parts->products = static_cast<double>(members_.size());
  }
  cycles = overlapped(cycles, traffic.streamed, k.not_hidden) + traffic.waited;
  if (!self_) cycles += info_.spatial_points() / full * (info_.flops_per_point + k.written_vector);
  const auto tail = category(d, tail_slot_) == 1 ? sched::TailPolicy::kPeel : sched::TailPolicy::kPredicate;
  double slower = 1;
  if (contiguous_row_) {
    slower = tail_factor(m, info_.extent(rows_.back()), row_width(d), true, tail, k.tail_masked);
  } else if (info_.contiguous_axis.valid()) {
    slower = tail_factor(m, info_.extent(info_.contiguous_axis), lanes_, true, tail, k.tail_masked);
  }
  cycles *= slower;
  ParallelLoop loop;
  for (size_t i = 0; i < std::min(parallel(d), rows_.size()); ++i)
    loop.add_axis(info_.extent(rows_[i]), contiguous_row_ && i + 1 == rows_.size() ? row_width(d) : 1.0,
                  tail == sched::TailPolicy::kPeel);
  if (parts != nullptr) {
    parts->tail = std::log(slower);
    parts->peeled = tail == sched::TailPolicy::kPeel ? 1 : 0;
    set_loop_parts(loop, context_.threads(), *parts);
  }
  return cycles * m.seconds_per_cycle() / loop.speedup(context_.threads()) +
         (loop.iterations() > 1 ? m.fork_seconds() : 0);
}

}  // namespace tensorsmith::space
