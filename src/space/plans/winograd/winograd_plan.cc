#include "space/plans/winograd/winograd_plan.h"

#include <algorithm>

#include "space/plan_steps.h"

namespace tensorsmith::space {

namespace {

constexpr int64_t kWinogradUnrollLimits[] = {1, 2, 4, 8};
// Most vector products that are unrolled, over all copies of the code. More of them would save a
// jump in as many cycles as there are products, which is not worth the code.
constexpr int64_t kUnrolledProducts = 48;
// At most 1 / kLargestShare of a row of tiles is computed twice; otherwise the tail has its own
// code.
constexpr int64_t kLargestShare = 10;

}  // namespace

WinogradPlan::WinogradPlan(const PlanContext& context, StageId output, const WinogradStages& stages)
    : Plan(context), output_(output), self_(output == stages.result), stages_(stages) {
  const auto& result = context.stage(stages.result);
  const auto& input = context.stage(stages.input);
  batch_ = result.extent(kBatch);
  out_channels_ = result.extent(kChannel);
  height_ = result.extent(kHeight);
  width_ = result.extent(kWidth);
  // i, j, n, th, tw, ic
  tiles_h_ = input.extent(AxisId(3));
  tiles_w_ = input.extent(AxisId(4));
  in_channels_ = input.extent(AxisId(5));
  output_axis_ = axes_in(context, output, stages.result);

  const std::string name = context.op(stages.result).name + ".winograd";
  const int64_t lanes = context.machine.lanes(4);
  placement_slot_ = add_category(name + ".placement", DecisionRole::kLocation, {1, 1});
  strip_slot_ = add_tile(name + ".strip", tiles_h_, 1, 1, 0, true);
  data_slot_ = add_category(name + ".data", DecisionRole::kLocation, {1, 1, 1});
  h_slot_ = add_tile(name + ".tile.h", tiles_h_, 1, 1, 8, true);
  w_slot_ = add_tile(name + ".tile.w", tiles_w_, 1, 1, 2 * lanes);
  c_slot_ = add_tile(name + ".tile.c", out_channels_, 1, lanes, 4 * lanes);
  unroll_slot_ = add_category(name + ".unroll", DecisionRole::kUnroll, {1, 1, 2, 1});
  if (context.threads() > 1)
    parallel_slot_ = add_category(name + ".parallel", DecisionRole::kParallel, {0.1, 1});
}

WinogradPlan::Choice WinogradPlan::decode(Decisions d) const {
  Choice c;
  const int64_t lanes = context_.machine.lanes(4);
  c.strips = category(d, placement_slot_) == 0;
  c.strip = c.strips ? lengths(d, strip_slot_)[0] : tiles_h_;
  c.data = static_cast<DataLocation>(category(d, data_slot_));
  if (!c.strips && c.data == DataLocation::kStrip) c.data = DataLocation::kRoot;
  c.tile_h = largest_divisor(c.strip, lengths(d, h_slot_)[0]);
  c.tile_w = lengths(d, w_slot_)[0];
  c.tile_c = lengths(d, c_slot_)[0];
  if (c.tile_c > lanes) c.tile_c -= c.tile_c % lanes;
  c.lanes = std::min(c.tile_c, lanes);
  const int64_t accumulators = c.tile_h * c.tile_w * ((c.tile_c + lanes - 1) / lanes);
  const int64_t unroll =
      std::min(kWinogradUnrollLimits[category(d, unroll_slot_)],
               std::max<int64_t>(kUnrolledProducts / std::max<int64_t>(accumulators * code_copies(c), 1), 1));
  c.unroll = largest_divisor(in_channels_, unroll);
  c.parallel = context_.threads() > 1 && category(d, parallel_slot_) == 1;
  return c;
}

std::string WinogradPlan::describe() const {
  std::string text = "winograd " + std::to_string(stages_.m) + " " + context_.op(stages_.result).name;
  if (!self_) text += " into " + context_.op(output_).name;
  return text;
}

int64_t WinogradPlan::channel_lanes(int64_t channels) const {
  return std::min(channels, context_.machine.lanes(4));
}

bool WinogradPlan::shifts_tiles(const Choice& c) const {
  const int64_t twice = (c.tile_w - tiles_w_ % c.tile_w) % c.tile_w;
  return twice > 0 && twice * kLargestShare <= tiles_w_;
}

int64_t WinogradPlan::code_copies(const Choice& c) const {
  return (tiles_w_ % c.tile_w == 0 || shifts_tiles(c) ? 1 : 2) * (out_channels_ % c.tile_c == 0 ? 1 : 2);
}

Status WinogradPlan::check(Decisions d) const {
  const Choice c = decode(d);
  const int64_t lanes = context_.machine.lanes(4);
  const int64_t accumulators = c.tile_h * c.tile_w * ((c.tile_c + lanes - 1) / lanes);
  if (accumulators > context_.machine.registers)
    return refuse(stages_.result, "the register tile does not fit the register file");
  if (c.tile_c < lanes && c.tile_c < out_channels_)
    return refuse(stages_.result, "the vectors of the register tile are not full");
  const int64_t padded_c = (out_channels_ + c.tile_c - 1) / c.tile_c * c.tile_c;
  if (padded_c > 2 * out_channels_)
    return refuse(stages_.result, "more than half of the tiles would be tail");
  return {};
}

}  // namespace tensorsmith::space
