// The estimate of row-wise reductions on a GPU.
#include <algorithm>
#include <cmath>

#include "space/estimate/gpu_access.h"
#include "space/estimate/gpu_constants.h"
#include "space/plans/gpu_rows/gpu_rows_plan.h"

namespace tensorsmith::space {

double GpuRowsPlan::estimate(Decisions d, EstimateParts*) const {
  const auto& m = context_.machine.gpu;
  const GpuConstants& k = gpu_constants();
  GpuKernel kernel;
  kernel.block = block(d);
  double blocks = 1;
  for (const AxisId a : rows_) blocks *= info_.extent(a);
  kernel.blocks = blocks / rows(d);
  const double n = threads(d), warps = n / warp_;
  const auto is_member = [&](StageId s) {
    return std::any_of(members_.begin(), members_.end(), [&](const Member& o) { return o.stage == s; });
  };
  std::vector<StageId> seen;
  // `rounds`: of all threads of a block; each thread computes a point of the stage per round.
  const auto add = [&](StageId s, double rounds, bool along, int64_t vector) {
    const auto& stage = context_.stage(s);
    kernel.products += warps * rounds * stage.flops_per_point * vector;
    kernel.steps += warps * rounds;
    for (const Read& read : effective_reads(context_, s)) {
      const auto& producer = context_.stage(read.producer);
      if (is_member(read.producer)) {
        kernel.values += warps * rounds;
        continue;
      }
      const GpuAccess access =
          along ? contiguous_access(warp_, vector, producer.element_bytes)
                : strided_access(warp_, static_cast<int64_t>(k.scattered) / producer.element_bytes,
                                 producer.element_bytes);
      kernel.memory.add(access, warps * rounds);
      if (std::find(seen.begin(), seen.end(), read.producer) != seen.end()) continue;
      seen.push_back(read.producer);
      kernel.bytes_once += producer.spatial_points() * producer.element_bytes;
    }
  };
  for (const auto& member : members_) {
    const auto& stage = context_.stage(member.stage);
    const double points = points_of_block(d, member);
    if (!stage.reduction) {
      // An inlined stage is computed once per reader.
      const double times = in_shared(d, member) ? 1 : stage.consumers.size();
      add(member.stage, times * std::ceil(points / n), true, 1);
      kernel.waits += 1;
      continue;
    }
    const int64_t lanes = lanes_of(d, member);
    const double share = points * lanes;
    const double rounds = std::ceil(share / n) * std::ceil(stage.reduce_points() / lanes);
    const bool along = !lanes_last_ || lanes >= 8;
    add(member.stage, rounds, along, 1);
    kernel.waits += 1;
    const double second = second_lanes(lanes);
    const double steps = lanes / second + second;
    if (lanes == 1) continue;
    kernel.values += 2 * steps * warps;
    kernel.waits += k.meeting * (second > 1 ? 3 : 2) + k.meeting * steps / 8;
  }
  if (!self_) {
    double columns = 1;
    for (const AxisId a : columns_) columns *= info_.extent(a);
    const double v = vector(d);
    add(output_, std::ceil(rows(d) * columns / v / n), true, vector(d));
    kernel.waits += 1;
  }
  kernel.bytes_once += info_.spatial_points() * info_.element_bytes;
  return gpu_seconds(m, kernel);
}

}  // namespace tensorsmith::space
