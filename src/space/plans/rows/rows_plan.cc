#include "space/plans/rows/rows_plan.h"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace tensorsmith::space {

RowsPlan::RowsPlan(const PlanContext& context, StageId output, std::vector<StageId> attached)
    : Plan(context), output_(output), info_(context.stage(output)) {
  if (info_.reduction) {
    self_ = true;
    add_row_member(context, output, output, members_);
  }
  for (const StageId stage : std::views::reverse(attached)) add_row_member(context, output, stage, members_);
  map_to_root(context, output, members_);
  const std::string name = context.op(output).name;
  lanes_ = context.machine.lanes(info_.element_bytes);
  for (const AxisId a : info_.spatial_axes()) {
    if (info_.extent(a) <= 1) continue;
    bool row = true;
    for (const auto& member : members_) row = row && maps_to(member, a);
    (row ? rows_ : columns_).push_back(a);
  }
  contiguous_row_ = !rows_.empty() && rows_.back() == info_.contiguous_axis && !reduces_along_memory();
  if (contiguous_row_) width_slot_ = add_category(name + ".width", DecisionRole::kVectorize, {1, 1, 0.5});
  IdVector<StageId, bool> inlined = context.inlined;  // also the members that may be inlined
  for (auto& member : members_) {
    const auto& stage = context.stage(member.stage);
    const std::string own = context.op(member.stage).name;
    const StageId s = member.stage;
    inlined[s] = !stage.reduction && !stage.output;
    inlined[s] = inlined[s] && inlining_fits(*context.workload, inlined);
    if (inlined[s]) member.inline_slot = add_category(own + ".inline", DecisionRole::kLocation, {2, 1});
    if (stage.reduction && !contiguous_row_) {
      find_factor_axis(member);
      if (member.factor_axis.valid())
        member.factor_slot = add_category(own + ".rfactor", DecisionRole::kVectorize, {0.3, 1, 1, 1});
    }
  }
  parallel_slot_ = add_parallel(name, rows_.size());
  tail_slot_ = add_category(name + ".tail", DecisionRole::kTail, {0.25, 0.75});
}

std::string RowsPlan::describe() const {
  std::string text = "row-wise " + context_.op(output_).name + " of";
  for (const auto& member : members_) text += " " + context_.op(member.stage).name;
  return text;
}

void RowsPlan::find_factor_axis(Member& member) const {
  const auto& stage = context_.stage(member.stage);
  if (stage.arg_reduction) return;
  for (const auto& read : effective_reads(context_, member.stage)) {
    if (!read.affine) continue;
    for (const AxisId a : stage.reduce_axes())
      if (std::abs(read.stride(a)) == 1 && stage.extent(a) > 1) member.factor_axis = a;
  }
}

bool RowsPlan::reduces_along_memory() {
  bool along = false;
  for (auto& member : members_) {
    const auto& stage = context_.stage(member.stage);
    if (!stage.reduction) continue;
    find_factor_axis(member);
    along = along || (member.factor_axis.valid() && stage.extent(member.factor_axis) >= lanes_);
    for (const auto& read : effective_reads(context_, member.stage))
      if (!read.affine || std::abs(stride_along_rows(member, read)) == 1) return false;
  }
  return along;
}

int64_t RowsPlan::factor_of(const Member& member, size_t choice) const {
  const auto& stage = context_.stage(member.stage);
  const int64_t extent = stage.extent(member.factor_axis);
  const int64_t own_lanes = context_.machine.lanes(stage.element_bytes);
  const int64_t factor = own_lanes * (int64_t{1} << (choice - 1));
  return std::min(factor, extent);
}

int64_t RowsPlan::row_width(Decisions d) const {
  const int64_t extent = info_.extent(rows_.back());
  return std::min(extent, lanes_ * (int64_t{1} << category(d, width_slot_)));
}

int64_t RowsPlan::stride_along_rows(const Member& member, const Read& read) const {
  for (const AxisId a : member.to_output.ids())
    if (member.to_output[a] == rows_.back()) return read.strides[a];
  return 0;
}

}  // namespace tensorsmith::space
