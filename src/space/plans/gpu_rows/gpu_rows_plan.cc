#include "space/plans/gpu_rows/gpu_rows_plan.h"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace tensorsmith::space {

namespace {

constexpr int64_t kMaxWarps = 32, kMaxRows = 128;
// Most results that are combined in one step, by one thread, rather than in two steps.
constexpr int64_t kOneStep = 16;
constexpr double kRegisters = 32;

}  // namespace

GpuRowsPlan::GpuRowsPlan(const PlanContext& context, const Group& group)
    : Plan(context),
      output_(group.root),
      pads_(group.pads),
      info_(context.stage(group.root)),
      self_(info_.reduction),
      warp_(std::min(context.machine.gpu.warp, context.machine.gpu.max_threads)) {
  if (self_) add_row_member(context, output_, output_, members_);
  std::vector<StageId> attached = group.attached;
  if (group.anchor.valid() && group.anchor != group.root) attached.push_back(group.anchor);
  std::sort(attached.begin(), attached.end());
  for (const StageId stage : std::views::reverse(attached)) add_row_member(context, output_, stage, members_);
  map_to_root(context, output_, members_);
  for (const AxisId a : info_.spatial_axes()) {
    if (info_.extent(a) <= 1) continue;
    const bool row = std::all_of(members_.begin(), members_.end(),
                                 [&](const Member& member) { return contains(member.to_output, a); });
    (row ? rows_ : columns_).push_back(a);
  }
  const std::string name = context.op(output_).name;
  std::vector<double> warps, rows;
  for (int64_t w = 1; w <= kMaxWarps && w * warp_ <= context.machine.gpu.max_threads; w *= 2)
    warps.push_back(1);
  threads_slot_ = add_category(name + ".threads", DecisionRole::kParallel, warps);
  for (int64_t r = 1; r <= kMaxRows && !rows_.empty() && info_.extent(rows_.back()) % r == 0; r *= 2)
    rows.push_back(1);
  if (rows.size() > 1) rows_slot_ = add_category(name + ".rows", DecisionRole::kTile, rows);
  const AxisId last = info_.contiguous_axis;
  if (last.valid() && contains(columns_, last))
    vector_slot_ = add_gpu_vector(name + ".vectorize", info_.element_bytes,
                                  [&](int64_t lanes) { return info_.extent(last) % lanes == 0; });
  IdVector<StageId, bool> inlined = context.inlined;  // also the members that may be inlined
  for (auto& member : members_) {
    const auto& stage = context.stage(member.stage);
    if (stage.reduction) {
      find_lanes(member);
      continue;
    }
    // A member is stored if inlining it would make definitions too large.
    inlined[member.stage] = true;
    const bool fits = inlining_fits(*context.workload, inlined);
    inlined[member.stage] = fits;
    member.shared_slot = add_category(context.op(member.stage).name + ".shared", DecisionRole::kLocation,
                                      fits ? std::vector<double>{1, 1} : std::vector<double>{1e-9, 1});
  }
}

// Distributes over lanes the reduce axis along memory if it has enough points for a warp, else all
// reduce axes.
void GpuRowsPlan::find_lanes(Member& member) {
  const auto& stage = context_.stage(member.stage);
  const auto reads = effective_reads(context_, member.stage);
  AxisId along;
  bool rows_along = false;
  for (const auto& read : reads) {
    if (!read.affine) continue;
    for (const AxisId a : stage.axes()) {
      if (std::abs(read.stride(a)) != 1 || stage.extent(a) <= 1) continue;
      if (stage.is_reduce(a))
        along = a;
      else if (member.to_output[a].valid() && !rows_.empty() && member.to_output[a] == rows_.back())
        rows_along = true;
    }
  }
  if (rows_along && !along.valid()) lanes_last_ = false;
  if (along.valid() && stage.extent(along) >= warp_) {
    member.lane_axes = {along};
    return;
  }
  for (const AxisId a : stage.reduce_axes())
    if (stage.extent(a) > 1) member.lane_axes.push_back(a);
}

AxisId GpuRowsPlan::row_of(const Member& member) const {
  if (rows_.empty()) return {};
  for (const AxisId a : member.to_output.ids())
    if (member.to_output[a] == rows_.back()) return a;
  return {};
}

std::vector<AxisId> GpuRowsPlan::columns_of(const Member& member) const {
  std::vector<AxisId> columns;
  for (const AxisId a : context_.stage(member.stage).spatial_axes()) {
    const AxisId to = member.to_output[a];
    if (!(to.valid() && contains(rows_, to)) && context_.stage(member.stage).extent(a) > 1)
      columns.push_back(a);
  }
  return columns;
}

std::string GpuRowsPlan::describe() const {
  std::string text = "row-wise " + context_.op(output_).name + " of";
  for (const auto& member : members_) text += " " + context_.op(member.stage).name;
  return text;
}

int64_t GpuRowsPlan::lanes_of(Decisions d, const Member& member) const {
  double points = 1;
  for (const AxisId a : member.lane_axes) points *= context_.stage(member.stage).extent(a);
  int64_t lanes = this->lanes(d);
  while (lanes > 1 && lanes > points) lanes /= 2;
  return lanes;
}

int64_t GpuRowsPlan::second_lanes(int64_t lanes) {
  int64_t second = 1;
  while (lanes > kOneStep && second * second * 2 <= lanes) second *= 2;
  return second;
}

double GpuRowsPlan::points_of_block(Decisions d, const Member& member) const {
  const auto& stage = context_.stage(member.stage);
  double points = 1;
  for (const AxisId a : stage.spatial_axes()) {
    const AxisId to = member.to_output[a];
    if (to.valid() && contains(rows_, to)) {
      points *= to == rows_.back() ? static_cast<double>(rows(d)) : 1;
    } else {
      points *= stage.extent(a);
    }
  }
  return points;
}

GpuBlock GpuRowsPlan::block(Decisions d) const {
  GpuBlock block;
  block.threads = threads(d);
  block.registers = kRegisters;
  double bytes = 0;
  for (const auto& member : members_) {
    const auto& stage = context_.stage(member.stage);
    const double points = points_of_block(d, member) * stage.element_bytes;
    if (stage.reduction) {
      const int64_t lanes = lanes_of(d, member), second = second_lanes(lanes);
      bytes += points * (1 + (lanes > 1 ? lanes : 0) + (second > 1 ? second : 0));
    } else if (in_shared(d, member)) {
      // Reads that move along a column may extend beyond it; the elements beyond are stored, too.
      bytes += member.moved ? 2 * points : points;
    }
  }
  constexpr double kMost = 1e12;
  block.shared_bytes = static_cast<int64_t>(std::min(bytes, kMost));
  return block;
}

Status GpuRowsPlan::check(Decisions d) const {
  if (rows(d) > threads(d)) return refuse(output_, "a block has more rows than threads");
  for (const auto& member : members_) {
    if (member.shared_slot == kNone || in_shared(d, member)) continue;
    if (slots()[member.shared_slot].weights[0] < 1e-6)
      return refuse(output_, "the definition would become too large");
  }
  return check_block(context_.machine.gpu, block(d), context_.op(output_).name, info_.spatial_points());
}

}  // namespace tensorsmith::space
