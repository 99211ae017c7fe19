#include "space/plans/gpu_tiled/gpu_tiled_plan.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "sched/tensor_cores.h"
#include "space/plan_steps.h"

namespace tensorsmith::space {

namespace {

constexpr int64_t kGpuUnrollLimits[] = {1, 4, 16, 64};
// Registers of a thread besides its accumulators and operands, for addresses and counters.
constexpr double kTiledOtherRegisters = 24;
// The part of these that is in use while products are computed.
constexpr double kLiveAddresses = 12;
// Most values of operands that are counted as registers of a thread.
constexpr double kMostValues = 64;
constexpr int64_t kMostUnrolled = 4096;  // products that are unrolled
// Weights of 1, 2, ... chunks in shared memory at a time. With 1, no copies run ahead.
constexpr double kStageWeights[] = {1, 1, 1, 0.7};

// Returns whether all terms of an index are multiples of `multiple`, except for at most one axis with
// coefficient 1. So the index is a multiple whenever that axis is.
bool begins_at(const ReadIndex& index, int64_t multiple) {
  if (!index.affine || index.constant % multiple != 0) return false;
  int unit_axes = 0;
  for (const int64_t c : index.coefficients) {
    if (c == 1)
      ++unit_axes;
    else if (c % multiple != 0)
      return false;
  }
  return unit_axes <= 1;
}

}  // namespace

GpuTiledPlan::GpuTiledPlan(const PlanContext& context, StageId output, StageId anchor,
                           std::vector<StageId> pads)
    : AnchoredPlan(context, output, anchor, std::move(pads)) {
  collect_operands();
  make_slots();
}

void GpuTiledPlan::collect_operands() {
  for (auto& read : effective_reads(context_, anchor_)) {
    const auto seen = std::find_if(operands_.begin(), operands_.end(), [&](const Operand& other) {
      return other.read.producer == read.producer;
    });
    if (seen != operands_.end()) {  // the box around both reads can have any size
      seen->cacheable = false;
      continue;
    }
    Operand operand;
    for (size_t p = 0; p < pads_.size(); ++p)
      if (pads_[p] == read.producer) operand.pad = p;
    operand.cacheable = (read.affine || tile_within_blocks(read)) && !read.indices.empty();
    const auto& producer = context_.stage(read.producer);
    operand.cacheable = operand.cacheable && !producer.arg_reduction;
    for (const int64_t e : producer.extents) operand.cacheable = operand.cacheable && e > 0;
    operand.read = std::move(read);
    operands_.push_back(std::move(operand));
  }
}

void GpuTiledPlan::make_slots() {
  const std::string name = context_.op(anchor_).name;
  tile_slot_.assign(info_.num_axes(), kNone);
  constexpr int64_t kMaxInner = 16, kMaxStep = 32;
  for (const AxisId a : live_) {
    const int64_t block = block_[a];
    tile_slot_[a] = add_tile(name + ".tile." + context_.axis_name(anchor_, a), block > 1 ? block : extent(a),
                             4, 1, kMaxInner, block > 1);
  }
  for (const AxisId a : live_reduce_) {
    // Lengths must divide, so that there is no tail, if the extent has a divisor above 2 or is
    // short.
    const int64_t divisor = largest_divisor(extent(a), kMaxStep);
    tile_slot_[a] = add_tile(name + ".tile." + context_.axis_name(anchor_, a), extent(a), 2, 1, kMaxStep,
                             divisor > 2 || extent(a) <= kMaxStep);
  }
  order_slot_ = add_order();
  for (auto& operand : operands_) {
    if (!operand.cacheable) continue;
    bool reused = false;
    for (const AxisId a : live_)
      reused = reused || !operand.read.depends_on(a) || operand.read.block_of(a) > 1;
    for (const auto& index : operand.read.indices)
      reused = reused || (index.affine && !index.single_axis().valid());
    const auto& producer = context_.stage(operand.read.producer);
    const std::string copy = name + ".shared." + context_.op(operand.read.producer).name;
    operand.cache_slot = add_category(copy, DecisionRole::kCacheWrite,
                                      reused ? std::vector<double>{0.1, 0.9} : std::vector<double>{0.7, 0.3});
    if (operand.pad == kNone)
      operand.vector_slot =
          add_gpu_vector(copy + ".vectorize", producer.element_bytes, [](int64_t) { return true; });
    if (producer.contiguous_axis.valid() && producer.contiguous_axis != AxisId(0))
      operand.align_slot = add_category(copy + ".align", DecisionRole::kLayout, {1, 1});
  }
  if (!live_reduce_.empty())
    unroll_slot_ = add_category(name + ".unroll", DecisionRole::kUnroll, {0.3, 1, 1, 1});
  const bool copies = std::any_of(operands_.begin(), operands_.end(),
                                  [](const Operand& operand) { return operand.cache_slot != kNone; });
  if (copies && !live_reduce_.empty() && sched::copies_asynchronously(context_.machine.gpu.capability))
    stages_slot_ = add_category(name + ".stages", DecisionRole::kUnroll,
                                {std::begin(kStageWeights), std::end(kStageWeights)});
}

GpuTiledPlan::Choice GpuTiledPlan::decode(Decisions d) const {
  Choice c;
  for (Lengths* l : {&c.vthreads, &c.threads, &c.outer, &c.inner}) l->assign(info_.num_spatial, 1);
  for (Lengths* l : {&c.chunk, &c.step}) l->assign(info_.num_axes(), 1);
  for (const AxisId a : live_) {
    const auto l = lengths(d, tile_slot_[a]);
    c.vthreads[a] = l[0];
    c.threads[a] = l[1];
    c.outer[a] = l[2];
    c.inner[a] = l[3];
  }
  for (const AxisId r : live_reduce_) {
    const auto l = lengths(d, tile_slot_[r]);
    c.chunk[r] = l[0];
    c.step[r] = l[1];
  }
  c.block_order = ordered(d, order_slot_);
  if (unroll_slot_ != kNone) c.unroll = kGpuUnrollLimits[category(d, unroll_slot_)];
  if (stages_slot_ != kNone) c.stages = static_cast<int64_t>(category(d, stages_slot_)) + 1;
  return c;
}

// Computes the region of a tile's reads as bound inference does: elements outside the tensor are
// kept, to be filled with zeros, unless the region is at least twice as long as the tensor.
GpuTiledPlan::Lengths GpuTiledPlan::region(const Read& read, const AxisRanges& ranges) const {
  Lengths result;
  for (const AxisId dim : read.indices.ids()) {
    const auto& index = read.indices[dim];
    double range = 1;
    for (const AxisId a : ranges.ids()) {
      const double steps = index.blocked ? std::ceil(ranges[a] / index.blocks[a]) : ranges[a];
      range += std::abs(index.coefficients[a]) * (steps - 1);
    }
    const int64_t whole = context_.stage(read.producer).extent(dim);
    const auto width = static_cast<int64_t>(range);
    result.push_back(width < 2 * whole ? width : whole);
  }
  return result;
}

GpuTiledPlan::Copy GpuTiledPlan::copy_of(Decisions d, const Choice& c, const Operand& operand) const {
  Copy copy;
  if (operand.cache_slot == kNone || category(d, operand.cache_slot) == 0) return copy;
  copy.made = true;
  const auto& producer = context_.stage(operand.read.producer);
  AxisRanges ranges(info_.num_axes(), 1);
  for (const AxisId a : live_) ranges[a] = std::min(extent(a), c.tile(a));
  for (const AxisId r : live_reduce_) ranges[r] = c.chunk[r] * c.step[r];
  copy.extents = region(operand.read, ranges);
  const AxisId last = producer.contiguous_axis;
  if (last.valid() && operand.vector_slot != kNone) {
    // Vectors must end where rows do, in the tile and in the tensor, and begin at multiples of
    // their length.
    const int64_t row = copy.extents[last];
    const auto& index = operand.read.indices[last];
    const bool whole = row == producer.extent(last);
    const auto fits = [&](int64_t vector) {
      return row % vector == 0 && producer.extent(last) % vector == 0 && (whole || begins_at(index, vector));
    };
    copy.vector = int64_t{1} << category(d, operand.vector_slot);
    while (copy.vector > 1 && !fits(copy.vector)) copy.vector /= 2;
  }
  int64_t stride = 1;
  const int64_t words = std::max<int64_t>(1, 4 / producer.element_bytes);
  for (size_t i = copy.extents.size(); i-- > 0;) {
    const AxisId axis(i);
    if (last.valid() && axis < last && copy.row_stride == 1) {
      if (operand.align_slot != kNone && category(d, operand.align_slot) == 1) {
        // Rows begin in banks that are an odd number of vectors apart.
        copy.aligned = axis;
        copy.align_offset = std::max(copy.vector, words);
        copy.align_factor = 2 * copy.align_offset;
        while (stride % copy.align_factor != copy.align_offset) ++stride;
      }
      copy.row_stride = stride;
    }
    stride *= copy.extents[axis];
  }
  copy.bytes = stride * producer.element_bytes;
  return copy;
}

std::string GpuTiledPlan::describe() const { return describe_stages("tile SSSRRSRS"); }

int64_t GpuTiledPlan::threads(const Choice& c) const {
  int64_t threads = 1;
  for (const AxisId a : live_) threads *= c.threads[a];
  return threads;
}

double GpuTiledPlan::values(const Choice& c, const Operand& operand, bool vthreads) const {
  AxisRanges ranges(info_.num_axes(), 1);
  double apart = 1;
  for (const AxisId a : live_) {
    if (!operand.read.depends_on(a)) continue;
    ranges[a] = c.registers(a);
    if (vthreads) apart *= c.vthreads[a];
  }
  for (const double n : footprint(operand.read, ranges)) apart *= n;
  return apart;
}

GpuBlock GpuTiledPlan::block(Decisions d, const Choice& c) const {
  GpuBlock block;
  block.threads = threads(c);
  double accumulators = std::max(1.0, info_.element_bytes / 4.0);
  for (const AxisId a : live_) {
    block.vthreads *= c.vthreads[a];
    accumulators *= c.thread_tile(a);
  }
  double operands = 0;
  for (const auto& operand : operands_) {
    block.shared_bytes += c.stages * copy_of(d, c, operand).bytes;
    operands += values(c, operand, true);
  }
  // On average, half of the operands of a step are in registers: some are not loaded yet, and others are
  // not needed any more.
  block.registers = kTiledOtherRegisters + accumulators + 0.5 * std::min(operands, kMostValues);
  return block;
}

double GpuTiledPlan::chunks(const Choice& c) const {
  double chunks = 1;
  for (const AxisId r : live_reduce_)
    chunks *= std::ceil(static_cast<double>(extent(r)) / static_cast<double>(c.chunk[r] * c.step[r]));
  return chunks;
}

int64_t GpuTiledPlan::unrolled_points(const Choice& c) const {
  int64_t points = 1;
  for (const Lengths* l : {&c.step, &c.chunk})
    for (size_t i = live_reduce_.size(); i-- > 0;) {
      if (points * (*l)[live_reduce_[i]] > c.unroll) return points;
      points *= (*l)[live_reduce_[i]];
    }
  return points;
}

double GpuTiledPlan::live_values(const Choice& c) const {
  double accumulators = 1, operands = 0;
  for (const AxisId a : live_) accumulators *= c.thread_tile(a);
  for (const auto& operand : operands_) operands += values(c, operand, true);
  // With copies that run ahead, only the operands of the next point are live.
  if (c.stages > 1) return kLiveAddresses + accumulators + operands;
  int64_t step = 1;
  for (const AxisId r : live_reduce_) step *= c.step[r];
  const double together = std::min(step, unrolled_points(c));
  return kLiveAddresses + accumulators + together * operands;
}

double GpuTiledPlan::unrolled(const Choice& c) const {
  double products = 1;
  for (const AxisId a : live_) products *= c.thread_tile(a);
  return products * unrolled_points(c);
}

int64_t GpuTiledPlan::store_vector(const Choice& c) const {
  if (!contiguous_.valid() || extent(contiguous_) % c.tile(contiguous_) != 0) return 1;
  const int64_t most = kMaxVectorBytes / context_.stage(output_).element_bytes;
  return std::gcd(c.registers(contiguous_), std::min<int64_t>(most, 4));
}

// Returns whether some operands are copied to shared memory while the tile of another one, which is read
// in place, may extend beyond its tensor. Copies are filled with zeros there, but a read in place needs a
// guard around the product. Threads that copy together cannot synchronize under a guard that holds for
// only some of them.
bool GpuTiledPlan::guards_products(Decisions d, const Choice& c) const {
  bool shared = false, leaves = false;
  for (const auto& operand : operands_) {
    const bool made = operand.cache_slot != kNone && category(d, operand.cache_slot) == 1;
    shared = shared || made;
    if (made) continue;
    for (const AxisId a : live_)
      leaves = leaves || (operand.read.depends_on(a) && extent(a) % c.tile(a) != 0);
  }
  return shared && leaves;
}

Status GpuTiledPlan::check(Decisions d) const {
  const Choice c = decode(d);
  double padded = 1, points = 1;
  for (const AxisId a : live_) {
    const double tile = c.tile(a), length = extent(a);
    padded *= tile * std::ceil(length / tile);
    points *= length;
  }
  if (guards_products(d, c))
    return refuse(anchor_,
                  "an operand is read in place and ends inside a tile, while another operand is copied");
  if (padded > 2 * points) return refuse(anchor_, "more than half of the tiles would be tail");
  const auto made = [&](const Operand& operand) {
    return operand.cache_slot != kNone && category(d, operand.cache_slot) == 1;
  };
  if (c.stages > 1 && std::none_of(operands_.begin(), operands_.end(), made))
    return refuse(anchor_, "several stages, but no operand is copied");
  if (c.stages > 1 && c.stages > chunks(c)) return refuse(anchor_, "more stages than chunks");
  if (unrolled(c) > kMostUnrolled) return refuse(anchor_, "too much unrolled code");
  return check_block(context_.machine.gpu, block(d, c), context_.op(anchor_).name, info_.spatial_points());
}

}  // namespace tensorsmith::space
