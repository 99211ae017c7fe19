#include "space/anchored_plan.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace tensorsmith::space {

AnchoredPlan::AnchoredPlan(const PlanContext& context, StageId output, StageId anchor,
                           std::vector<StageId> pads)
    : Plan(context),
      output_(output),
      anchor_(anchor),
      self_(output == anchor),
      pads_(std::move(pads)),
      info_(context.stage(anchor)),
      output_axis_(axes_in(context, output, anchor)) {
  block_.assign(info_.num_spatial, 1);
  for (const AxisId a : info_.spatial_axes()) {
    if (extent(a) <= 1) continue;
    live_.push_back(a);
    if (output_axis_[a] == context.stage(output).contiguous_axis) contiguous_ = a;
  }
  for (const AxisId a : info_.reduce_axes())
    if (extent(a) > 1) live_reduce_.push_back(a);
  // The output stage's loops follow its own axes.
  std::sort(live_.begin(), live_.end(),
            [&](AxisId x, AxisId y) { return output_axis_[x] < output_axis_[y]; });
}

std::string AnchoredPlan::describe_stages(std::string kind) const {
  std::string text = std::move(kind) + " " + context_.op(anchor_).name;
  if (!self_) text += " into " + context_.op(output_).name;
  for (const StageId pad : pads_) text += " with " + context_.op(pad).name;
  return text;
}

size_t AnchoredPlan::add_order() {
  if (live_.size() <= 1) return kNone;
  std::vector<double> weights(live_.size(), 1.0);
  weights[0] = 2;
  return add_category(context_.op(anchor_).name + ".order", DecisionRole::kLocation, std::move(weights));
}

std::vector<AxisId> AnchoredPlan::ordered(Decisions decisions, size_t order_slot) const {
  std::vector<AxisId> order = live_;
  if (order_slot == kNone) return order;
  const auto last = std::span(order).last(category(decisions, order_slot) + 1);
  std::rotate(last.begin(), last.begin() + 1, last.end());
  return order;
}

bool AnchoredPlan::tile_within_blocks(const Read& read) {
  if (!read.blocked) return false;
  Lengths blocks = block_;
  for (const AxisId a : info_.axes()) {
    const int64_t block = read.block_of(a);
    if (block == 1) continue;
    if (info_.is_reduce(a)) return false;
    auto& own = blocks[a];
    own = own == 1 ? block : std::gcd(own, block);
    if (own == 1 || extent(a) % own != 0) return false;
  }
  block_ = std::move(blocks);
  return true;
}

}  // namespace tensorsmith::space
