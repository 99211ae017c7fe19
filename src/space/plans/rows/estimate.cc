#include <algorithm>
#include <cmath>

#include "space/estimate/access.h"
#include "space/estimate/parallel.h"
#include "space/plans/rows/rows_plan.h"

namespace tensorsmith::space {

double RowsPlan::estimate(Decisions d) const {
  const auto& m = context_.machine;
  const Constants& k = m.fitted();
  double cycles = 0;
  double inlined = 0;
  const double full = lanes_;
  for (const auto& member : members_) {
    const auto& stage = context_.stage(member.stage);
    const double points = stage.spatial_points() * stage.reduce_points();
    // Cycles a point: of the arithmetic in vectors of `width`, and of reads that gather.
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
      if (stage.reduction) gathers = std::max(gathers, m.fma_latency / rows - flops / width);
    } else if (!stage.reduction) {
      width = std::min(full, stage.spatial_points());
    } else if (member.factor_slot != kNone && category(d, member.factor_slot) > 0) {
      // The dependent chain of additions is shared by the vectors in flight; then the lanes are halved.
      const double factor = factor_of(member, category(d, member.factor_slot));
      width = std::min(factor, full) / std::max(1.0, m.fma_latency * full / std::max(factor, full) / flops);
      extra = stage.spatial_points() * (factor / full + k.halving * std::log2(std::min(factor, full)));
    } else {
      width = flops / m.fma_latency;
    }
    if (member.inline_slot != kNone && category(d, member.inline_slot) == 1) {
      inlined += stage.flops_per_point * stage.consumers.size() * points / full;
      continue;
    }
    cycles += points * (flops / width + gathers) + extra;
  }
  cycles += inlined;
  if (!self_) cycles += info_.spatial_points() / full * (info_.flops_per_point + k.written_vector);
  const auto tail = category(d, tail_slot_) == 1 ? sched::TailPolicy::kPeel : sched::TailPolicy::kPredicate;
  if (contiguous_row_) {
    cycles *= tail_factor(m, info_.extent(rows_.back()), row_width(d), true, tail, k.tail_masked);
  } else if (info_.contiguous_axis.valid()) {
    cycles *= tail_factor(m, info_.extent(info_.contiguous_axis), lanes_, true, tail, k.tail_masked);
  }
  ParallelLoop loop;
  for (size_t i = 0; i < std::min(parallel(d), rows_.size()); ++i)
    loop.add_axis(info_.extent(rows_[i]), contiguous_row_ && i + 1 == rows_.size() ? row_width(d) : 1.0,
                  tail == sched::TailPolicy::kPeel);
  return cycles * m.seconds_per_cycle / loop.speedup(context_.threads) +
         (loop.iterations() > 1 ? m.fork_seconds : 0);
}

}  // namespace tensorsmith::space
