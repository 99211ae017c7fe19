// A thread computes whole outputs: elementwise chains, transposes, gathers, argmax, short
// reductions. All outputs form one loop that is split into blocks, elements of a thread, threads,
// and vectors; a reduction is summed up in registers.
#include <algorithm>
#include <cmath>

#include "space/estimate/gpu_access.h"
#include "space/estimate/gpu_kernel.h"
#include "space/gpu_steps.h"
#include "space/plan_kind.h"

namespace tensorsmith::space {

namespace {

class GpuSpatialPlan final : public Plan {
 public:
  GpuSpatialPlan(const PlanContext& context, const Group& group);

  std::string describe() const override;
  void emit(TraceMaker& maker, Decisions d) const override;
  Status check(Decisions d) const override;
  double estimate(Decisions d, EstimateParts*) const override;

 private:
  // A block has 2^category warps, at most this many.
  static constexpr int64_t kMaxWarps = 32;

  int64_t threads(Decisions d) const { return warp_ << category(d, threads_slot_); }
  // Elements of a thread: vectors of adjacent elements, and several such vectors, a block's width
  // apart.
  int64_t vector(Decisions d) const {
    return vector_slot_ == kNone ? 1 : int64_t{1} << category(d, vector_slot_);
  }
  int64_t items(Decisions d) const { return int64_t{1} << category(d, items_slot_); }

  StageId output_, anchor_;  // anchor: a reduction (the output or its elementwise operand), or none
  std::vector<StageId> pads_;
  const StageInfo& info_;      // of the output
  const StageInfo& computed_;  // of the anchor if there is one, else of the output
  std::vector<Read> reads_;
  int64_t warp_;
  size_t threads_slot_ = kNone, vector_slot_ = kNone, items_slot_ = kNone;
};

GpuSpatialPlan::GpuSpatialPlan(const PlanContext& context, const Group& group)
    : Plan(context),
      output_(group.root),
      anchor_(group.anchor),
      pads_(group.pads),
      info_(context.stage(group.root)),
      computed_(context.stage(group.anchor.valid() ? group.anchor : group.root)),
      reads_(effective_reads(context, group.anchor.valid() ? group.anchor : group.root)),
      warp_(std::min(context.machine.gpu.warp, context.machine.gpu.max_threads)) {
  const std::string name = context.op(output_).name;
  std::vector<double> warps;
  for (int64_t w = 1; w <= kMaxWarps && w * warp_ <= context.machine.gpu.max_threads; w *= 2)
    warps.push_back(w * warp_ >= 128 && w * warp_ <= 512 ? 1 : 0.3);
  threads_slot_ = add_category(name + ".threads", DecisionRole::kParallel, warps);
  // A vector has adjacent elements in memory and begins at a multiple of its length.
  const auto row = static_cast<int64_t>(info_.spatial_points());
  if (!computed_.reduction)
    vector_slot_ = add_gpu_vector(name + ".vectorize", info_.element_bytes,
                                  [&](int64_t lanes) { return row % lanes == 0; });
  items_slot_ = add_category(name + ".items", DecisionRole::kTile, {1, 0.7, 0.5, 0.3, 0.2});
}

std::string GpuSpatialPlan::describe() const {
  std::string text = "threads " + context_.op(output_).name;
  if (anchor_.valid() && anchor_ != output_) text += " of " + context_.op(anchor_).name;
  return text;
}

void GpuSpatialPlan::emit(TraceMaker& maker, Decisions d) const {
  for (const StageId p : pads_) maker.compute_inline(p);
  StageId sum;
  if (anchor_.valid() && !computed_.arg_reduction) sum = compute_locally(maker, output_, anchor_);
  const auto axes = maker.axis_loops(output_);
  const std::ptrdiff_t rank = info_.num_spatial;
  const std::vector<LoopId> reduce(axes.begin() + rank, axes.end());
  const LoopId all = fuse_or_unit(maker, output_, {axes.begin(), axes.begin() + rank});
  const auto made =
      maker.split(output_, all, {items(d), threads(d), vector(d)}, sched::TailPolicy::kPredicate);
  std::vector<LoopId> order{made[0], made[2], made[1]};
  order.insert(order.end(), reduce.begin(), reduce.end());
  order.push_back(made[3]);
  maker.reorder(output_, order);
  maker.annotate(output_, made[0], sched::Annotation::kBlockX);
  maker.annotate(output_, made[2], sched::Annotation::kThreadX);
  if (items(d) > 1) maker.annotate(output_, made[1], sched::Annotation::kUnroll);
  if (vector(d) > 1) maker.annotate(output_, made[3], sched::Annotation::kVectorize);
  if (sum.valid()) maker.compute_at(sum, output_, made[1]);
}

Status GpuSpatialPlan::check(Decisions d) const {
  GpuBlock block;
  block.threads = threads(d);
  const double points = info_.spatial_points();
  if (items(d) * vector(d) > 1 && points < items(d) * vector(d) * warp_)
    return refuse(output_, "a single warp would compute more than all outputs");
  return check_block(context_.machine.gpu, block, context_.op(output_).name, points);
}

double GpuSpatialPlan::estimate(Decisions d, EstimateParts*) const {
  const auto& m = context_.machine.gpu;
  const double v = vector(d), n = items(d);
  const double points = info_.spatial_points(), steps = computed_.reduce_points();
  GpuKernel kernel;
  kernel.block.threads = threads(d);
  kernel.blocks = std::max(1.0, std::ceil(points / (v * n * threads(d))));
  const double warps = m.warps(threads(d));
  kernel.products = warps * v * n * steps * computed_.flops_per_point;
  if (computed_.reduction) kernel.steps = warps * n * steps;
  for (const Read& read : reads_) {
    const auto& producer = context_.stage(read.producer);
    kernel.memory.add(warp_access(context_, computed_, read, warp_, vector(d)), warps * n * steps);
    kernel.bytes_once += std::min(producer.spatial_points(), points * steps) * producer.element_bytes;
  }
  const GpuAccess store = contiguous_access(warp_, vector(d), info_.element_bytes);
  kernel.memory.instructions += warps * n;
  kernel.store_sectors = warps * n * store.sectors;
  kernel.bytes_once += points * info_.element_bytes;
  kernel.waits = 1;
  return gpu_seconds(m, kernel);
}

void make_gpu_spatial(const PlanContext& context, const Group& group, Plans& plans) {
  if (!group.attached.empty() || group.pattern != nullptr) return;
  plans.push_back(std::make_shared<GpuSpatialPlan>(context, group));
}

}  // namespace

extern const PlanKind gpu_spatial_kind{"gpu_spatial", make_gpu_spatial, nullptr, target::DeviceKind::kGpu};

}  // namespace tensorsmith::space
