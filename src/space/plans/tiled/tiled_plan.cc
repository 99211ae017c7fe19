#include "space/plans/tiled/tiled_plan.h"

#include <algorithm>
#include <cmath>

#include "space/plan_steps.h"

namespace tensorsmith::space {

namespace {

constexpr int64_t kUnrollLimits[] = {1, 4, 16, 64};

// Returns whether a step along the axis moves the read by one element, in row-major storage.
bool contiguous_along(const Read& read, AxisId axis) {
  return read.affine && std::abs(read.stride(axis)) == 1;
}

}  // namespace

TiledPlan::TiledPlan(const PlanContext& context, StageId output, StageId anchor, std::vector<StageId> pads,
                     bool two_level)
    : AnchoredPlan(context, output, anchor, std::move(pads)), two_level_(two_level) {
  collect_operands();
  make_slots();
}

void TiledPlan::collect_operands() {
  for (auto& read : effective_reads(context_, anchor_)) {
    Operand operand;
    const auto& producer = context_.stage(read.producer);
    for (const auto& own : info_.reads) operand.direct = operand.direct || own.producer == read.producer;
    bool whole_axes = read.affine && operand.direct;
    IdVector<AxisId, bool> used(info_.num_axes(), false);
    for (const AxisId d : read.indices.ids()) {
      if (!whole_axes) break;
      if (producer.extent(d) == 1) continue;
      const AxisId axis = read.indices[d].single_axis();
      if (axis.valid()) {
        // A constant may have more steps of a reduction than are read here (from the sums of
        // sched::Dot).
        const int64_t beyond = producer.extent(d) - extent(axis);
        whole_axes = read.indices[d].constant == 0 && !used[axis] &&
                     (beyond == 0 || (beyond > 0 && producer.constant && info_.is_reduce(axis)));
        used[axis] = true;
      } else {
        whole_axes = producer.constant;  // such a dimension is stored whole
      }
    }
    for (size_t p = 0; p < pads_.size(); ++p)
      if (pads_[p] == read.producer) operand.pad = p;
    // A layout cannot have an empty dimension.
    for (const int64_t e : producer.extents) whole_axes = whole_axes && e > 0;
    operand.packable = whole_axes && producer.constant && read.indices.size() > 1;
    operand.copyable = whole_axes && producer.placeholder && !producer.constant && read.indices.size() > 1;
    read.affine = read.affine || tile_within_blocks(read);
    operand.read = std::move(read);
    operands_.push_back(std::move(operand));
  }
  // A constant that is read twice in different ways keeps its layout.
  for (auto& a : operands_)
    for (auto& b : operands_)
      if (&a != &b && a.read.producer == b.read.producer) a.packable = a.copyable = false;
  for (size_t i = 0; i < operands_.size(); ++i) {
    operands_[i].copyable = operands_[i].copyable && i < 32;
    if (operands_[i].copyable) operands_[i].bit = uint32_t{1} << i;
  }
}

void TiledPlan::make_slots() {
  const std::string name = context_.op(anchor_).name;
  const int64_t lanes = context_.machine.lanes(info_.element_bytes);
  tile_slot_.assign(info_.num_axes(), kNone);
  for (const AxisId a : live_) {
    const int64_t block = block_[a];
    tile_slot_[a] = add_tile(name + ".tile." + context_.axis_name(anchor_, a), block > 1 ? block : extent(a),
                             two_level_ ? 3 : 1, 1, 64 * std::max<int64_t>(1, lanes / 16), block > 1);
  }
  if (two_level_)
    for (const AxisId a : live_reduce_)
      tile_slot_[a] = add_tile(name + ".tile." + context_.axis_name(anchor_, a), extent(a), 1, 1, 0);

  // Vector axes: contiguous in the output, or contiguous (or made so) in a read.
  std::vector<double> weights;
  for (const AxisId a : live_) {
    bool useful = a == contiguous_;
    bool gathers = false;
    for (const auto& operand : operands_) {
      if (!operand.read.depends_on(a)) continue;
      const bool unit = contiguous_along(operand.read, a);
      useful = useful || unit || operand.packable;
      gathers = gathers || !(unit || operand.packable || operand.copyable);
    }
    if (!useful) continue;
    vector_axes_.push_back(a);
    weights.push_back(gathers ? 0.15 : 1.0);
  }
  if (vector_axes_.size() > 1)
    vector_slot_ = add_category(name + ".vectorize", DecisionRole::kVectorize, weights);
  order_slot_ = add_order();
  if (live_reduce_.size() > 1)
    reduce_order_slot_ = add_category(name + ".reduce_order", DecisionRole::kLocation, {3, 1});
  if (std::any_of(operands_.begin(), operands_.end(), [](const Operand& o) { return o.packable; }))
    pack_slot_ = add_category(name + ".pack", DecisionRole::kLayout, {0.1, 0.9});
  for (auto& operand : operands_)
    if (operand.copyable)
      operand.copy_slot = add_category(name + ".copy." + context_.op(operand.read.producer).name,
                                       DecisionRole::kLayout, {0.6, 0.4});
  if (self_) cache_slot_ = add_category(name + ".cache_write", DecisionRole::kCacheWrite, {0.15, 0.85});
  if (two_level_) attach_slot_ = add_category(name + ".attach", DecisionRole::kLocation, {0.7, 0.3});
  for (size_t p = 0; p < pads_.size(); ++p)
    pad_slots_.push_back(
        add_category(context_.op(pads_[p]).name + ".location", DecisionRole::kLocation,
                     two_level_ ? std::vector<double>{1, 1, 1, 1} : std::vector<double>{1, 1, 1}));
  parallel_slot_ = add_parallel(name, live_.size());
  if (!live_reduce_.empty())
    unroll_slot_ = add_category(name + ".unroll", DecisionRole::kUnroll, {3, 2, 2, 0.5});
  tail_slot_ = add_category(name + ".tail", DecisionRole::kTail, {0.25, 0.75});
}

TiledPlan::Choice TiledPlan::decode(Decisions d) const {
  Choice c;
  c.t1.assign(info_.num_spatial, 1);
  c.t2.assign(info_.num_spatial, 1);
  c.t3.assign(info_.num_spatial, 1);
  for (const AxisId a : info_.spatial_axes()) {
    if (tile_slot_[a] == kNone) continue;
    const auto l = lengths(d, tile_slot_[a]);
    if (two_level_) {
      c.t1[a] = l[0];
      c.t2[a] = l[1];
    }
    c.t3[a] = l.back();
  }
  c.r1.assign(info_.num_axes(), 1);
  for (const AxisId r : info_.reduce_axes())
    if (tile_slot_[r] != kNone) c.r1[r] = lengths(d, tile_slot_[r])[0];
  const auto pick = [&](size_t slot, size_t otherwise) {
    return slot == kNone ? otherwise : category(d, slot);
  };
  c.attach_outer = pick(attach_slot_, 0) == 1;
  c.region.resize(info_.num_spatial);
  for (const AxisId a : info_.spatial_axes())
    c.region[a] = std::min(extent(a), c.t2[a] * c.t3[a] * (c.attach_outer ? c.t1[a] : 1));
  c.outer_order = ordered(d, order_slot_);
  c.reduce_order = live_reduce_;
  if (pick(reduce_order_slot_, 0) == 1)
    std::rotate(c.reduce_order.begin(), c.reduce_order.begin() + 1, c.reduce_order.end());
  if (!vector_axes_.empty()) {
    c.vector_axis = vector_axes_[pick(vector_slot_, 0)];
    c.lanes = vector_lanes(c.register_length(c.vector_axis), context_.machine.lanes(info_.element_bytes));
  }
  c.pack = pick(pack_slot_, 0) == 1;
  for (const auto& operand : operands_)
    if (pick(operand.copy_slot, 0) == 1) c.copied |= operand.bit;
  c.cache_write = pick(cache_slot_, 1) == 1;
  c.parallel = pick(parallel_slot_, 0);
  c.unroll = kUnrollLimits[pick(unroll_slot_, 0)];
  c.tail = pick(tail_slot_, 0) == 1 ? sched::TailPolicy::kPeel : sched::TailPolicy::kPredicate;
  for (size_t slot : pad_slots_) c.pads.push_back(static_cast<PadLocation>(category(d, slot)));
  // With one level, the steps of one product of tiles still have a loop of their own, along which
  // packed rows are contiguous.
  if (const auto tile = two_level_ ? std::nullopt : matrix_tile(c)) c.r1[c.reduce_order.back()] = tile->depth;
  return c;
}

std::string TiledPlan::describe() const { return describe_stages(two_level_ ? "tile SSRSRS" : "tile SRS"); }

double TiledPlan::accumulators(const Choice& c) const {
  double vectors = 1;
  for (const AxisId a : live_) vectors *= c.register_length(a);
  vectors /= c.lanes;
  const int64_t bytes = c.lanes * info_.element_bytes;
  return vectors * ((bytes + context_.machine.vector_bytes - 1) / context_.machine.vector_bytes);
}

// Returns how many steps of the reduction are unrolled. A loop with more steps than the limit is
// not unrolled at all.
int64_t TiledPlan::unrolled_steps(const Choice& c) const {
  int64_t product = 1;
  for (size_t i = c.reduce_order.size(); i-- > 0;) {
    const int64_t length = inner_steps(c, c.reduce_order[i]);
    if (product * length > c.unroll) break;
    product *= length;
  }
  return product;
}

// Returns the size of the register tile's code in simple vector instructions; compile time grows
// with it.
double TiledPlan::unrolled_instructions(const Choice& c) const {
  double size = accumulators(c) * unrolled_steps(c);
  // Conditions at every read, vectors of odd lengths and shuffled vectors take more code.
  for (const auto where : c.pads)
    if (where == PadLocation::kInline) size *= 4;
  if ((c.lanes & (c.lanes - 1)) != 0) size *= 2;
  for (const auto& operand : operands_) {
    if (c.lanes == 1 || !operand.read.affine || rearranged(c, operand)) continue;
    if (std::abs(operand.read.stride(c.vector_axis)) > 1) size *= 3;
  }
  return size;
}

// Returns how often the register tile's code is repeated for peeled tails. Example, 17 rows in
// tiles of 6 with register tiles of 4: a tile has 4 + 2 rows, and the last tile, of 5 rows, has 4 +
// 1.
double TiledPlan::peeled_bodies(const Choice& c) const {
  if (c.tail != sched::TailPolicy::kPeel) return 1;
  const auto pieces = [](int64_t length, int64_t tile) {
    return (length >= tile ? 1 : 0) + (length % tile != 0 ? 1 : 0);
  };
  double bodies = 1;
  for (const AxisId a : live_) {
    const int64_t tile = std::min(extent(a), c.tile(a));
    // The region is a part of the tile, or all of it.
    const int64_t in_tile = pieces(c.region[a], c.register_length(a));
    const int64_t in_last = pieces(extent(a) % tile, c.register_length(a));
    bodies *= in_tile + in_last;
  }
  for (const AxisId r : live_reduce_) bodies *= extent(r) % c.r1[r] != 0 ? 2 : 1;
  return bodies;
}

Status TiledPlan::check(Decisions d) const {
  const Choice c = decode(d);
  if (info_.dot && std::count(c.pads.begin(), c.pads.end(), PadLocation::kInline) > 0)
    return refuse(anchor_, "with inline padding, each dot product would pack its elements again");
  const double registers = context_.machine.registers;
  if (accumulators(c) > registers * 1.5 && !matrix_tile(c))
    return refuse(anchor_, "the register tile does not fit the register file");
  double region = info_.element_bytes, padded = 1, points = 1;
  for (const AxisId a : live_) {
    region *= c.region[a];
    const double tile = c.tile(a);
    padded *= tile * std::ceil(extent(a) / tile);
    points *= extent(a);
  }
  if (region > 2 * context_.machine.l2_bytes) return refuse(anchor_, "the tile does not fit the cache");
  if (padded > 2 * points) return refuse(anchor_, "more than half of the tiles would be tail");
  if (unrolled_instructions(c) > 400 || unrolled_instructions(c) * peeled_bodies(c) > 1000)
    return refuse(anchor_, "too much unrolled code");
  return {};
}

}  // namespace tensorsmith::space
