// Transposes and similar stages: the output is contiguous along one axis, its operand along another
// one. A block loads a square of both axes row by row into shared memory and stores it column by
// column.
#include <algorithm>
#include <cmath>

#include "space/estimate/gpu_constants.h"
#include "space/estimate/gpu_kernel.h"
#include "space/gpu_steps.h"
#include "space/plan_kind.h"

namespace tensorsmith::space {

namespace {

// Shorter axes are read in cache lines that neighbouring threads share anyway.
constexpr int64_t kLeastExtent = 8;
constexpr int64_t kSides[] = {16, 32, 64};

class GpuTransposePlan final : public Plan {
 public:
  // `read`: of a producer that nothing else in the stage's definition reads.
  GpuTransposePlan(const PlanContext& context, StageId output, Read read, AxisId along);

  std::string describe() const override { return "squares " + context_.op(output_).name; }
  void emit(TraceMaker& maker, Decisions d) const override;
  Status check(Decisions d) const override {
    return check_block(context_.machine.gpu, block(d), context_.op(output_).name, info_.spatial_points());
  }
  double estimate(Decisions d, EstimateParts*) const override;

 private:
  int64_t side(Decisions d, AxisId axis) const {
    return std::min(kSides[category(d, side_slot_)], info_.extent(axis));
  }
  int64_t threads(Decisions d) const { return context_.machine.gpu.warp << category(d, threads_slot_); }
  bool padded(Decisions d) const { return align_slot_ != kNone && category(d, align_slot_) == 1; }
  int64_t elements(Decisions d) const { return side(d, across_) * side(d, along_); }
  GpuBlock block(Decisions d) const;
  // Returns the producer's axis whose stride is padded: the last one before the contiguous axis.
  AxisId padded_axis() const;

  StageId output_;
  const StageInfo& info_;
  Read read_;
  AxisId across_, along_;  // axes that are contiguous in the output and in its operand
  size_t side_slot_ = kNone, threads_slot_ = kNone, align_slot_ = kNone;
};

GpuTransposePlan::GpuTransposePlan(const PlanContext& context, StageId output, Read read, AxisId along)
    : Plan(context),
      output_(output),
      info_(context.stage(output)),
      read_(std::move(read)),
      across_(info_.contiguous_axis),
      along_(along) {
  const std::string name = context.op(output).name;
  side_slot_ = add_category(name + ".side", DecisionRole::kTile, {0.5, 1, 0.5});
  std::vector<double> warps;
  for (int64_t w = 1; w <= 16 && w * context.machine.gpu.warp <= context.machine.gpu.max_threads; w *= 2)
    warps.push_back(1);
  threads_slot_ = add_category(name + ".threads", DecisionRole::kParallel, warps);
  if (padded_axis().valid()) align_slot_ = add_category(name + ".align", DecisionRole::kLayout, {0.2, 1});
}

AxisId GpuTransposePlan::padded_axis() const {
  const auto& producer = context_.stage(read_.producer);
  AxisId axis;
  for (const AxisId d : producer.spatial_axes())
    if (d < producer.contiguous_axis) axis = d;
  return axis;
}

GpuBlock GpuTransposePlan::block(Decisions d) const {
  GpuBlock block;
  block.threads = threads(d);
  const auto& producer = context_.stage(read_.producer);
  const int64_t row = side(d, along_) + (padded(d) ? 2 : 0);
  block.shared_bytes = side(d, across_) * row * producer.element_bytes;
  return block;
}

void GpuTransposePlan::emit(TraceMaker& maker, Decisions d) const {
  const StageId copy =
      maker.cache_read(read_.producer, ir::MemoryScope::kShared, {output_}, read_.indices.size());
  const auto axes = maker.axis_loops(output_);
  std::vector<LoopId> outer, inner;
  for (const AxisId a : axes.ids()) {
    if (a != across_ && a != along_) {
      outer.push_back(axes[a]);
      continue;
    }
    const auto made = maker.split(output_, axes[a], {side(d, a)}, kPredicate);
    outer.push_back(made[0]);
    inner.push_back(made[1]);
  }
  std::vector<LoopId> order = outer;
  order.insert(order.end(), inner.begin(), inner.end());
  maker.reorder(output_, order);
  const LoopId grid = maker.fuse(output_, outer);
  const auto made = maker.split(output_, maker.fuse(output_, inner), {threads(d)}, kPredicate);
  maker.annotate(output_, grid, sched::Annotation::kBlockX);
  maker.annotate(output_, made[1], sched::Annotation::kThreadX);
  // Rows begin in banks that are an odd number of elements apart.
  if (padded(d)) maker.storage_align(copy, maker.axis_loops(copy)[padded_axis()], 2, 1);
  share_among_threads(maker, copy, threads(d), 1);
  maker.compute_at(copy, output_, grid);
}

double GpuTransposePlan::estimate(Decisions d, EstimateParts*) const {
  const auto& m = context_.machine.gpu;
  const auto& producer = context_.stage(read_.producer);
  GpuKernel kernel;
  kernel.block = block(d);
  kernel.blocks = info_.spatial_points();
  for (const AxisId a : {across_, along_}) {
    const double length = static_cast<double>(info_.extent(a)), own = static_cast<double>(side(d, a));
    kernel.blocks *= std::ceil(length / own) / length;
  }
  const double points = static_cast<double>(elements(d));
  const double rounds = std::ceil(points / static_cast<double>(threads(d))) * m.warps(threads(d));
  kernel.memory.add(
      copy_access(m, threads(d), points, static_cast<double>(side(d, along_)), 1, producer.element_bytes));
  kernel.moved = rounds;
  kernel.values = rounds;
  WarpAddresses lanes;
  lanes.count = std::min(m.warp, target::GpuMachine::kMostLanes);
  const int64_t row = side(d, along_) + (padded(d) && side(d, along_) % 2 == 0 ? 1 : 0);
  for (size_t i = 0; i < lanes.count; ++i) lanes.at[i] = i * row;
  kernel.bank_waits = rounds * (bank_cycles(lanes, 1, producer.element_bytes) - 1);
  kernel.products = rounds * info_.flops_per_point;
  const GpuAccess store = contiguous_access(std::min(m.warp, side(d, across_)), 1, info_.element_bytes);
  const double parts = std::ceil(static_cast<double>(m.warp) / static_cast<double>(side(d, across_)));
  kernel.store_sectors = rounds * parts * store.sectors;
  kernel.bytes_once =
      info_.spatial_points() * info_.element_bytes + producer.spatial_points() * producer.element_bytes;
  kernel.waits = 2;
  return gpu_seconds(m, kernel);
}

void make_gpu_transpose(const PlanContext& context, const Group& group, Plans& plans) {
  const auto& info = context.stage(group.root);
  if (group.anchor.valid() || !group.attached.empty() || info.reduction || info.arg_reduction) return;
  const AxisId across = info.contiguous_axis;
  if (!across.valid() || info.extent(across) < kLeastExtent) return;
  const auto reads = effective_reads(context, group.root);
  for (const Read& read : reads) {
    const auto same = [&](const Read& other) { return other.producer == read.producer; };
    if (!read.affine || read.guarded || std::ranges::count_if(reads, same) > 1) continue;
    if (context.stage(read.producer).arg_reduction || std::abs(read.stride(across)) <= 1) continue;
    // Each axis of the square must move along a dimension of its own.
    AxisId along;
    int moved = 0;
    for (const AxisId a : info.spatial_axes())
      if (a != across && read.stride(a) == 1 && info.extent(a) >= kLeastExtent) along = a;
    if (!along.valid()) continue;
    for (const auto& index : read.indices)
      moved += index.single_axis() == across || index.single_axis() == along ? 1 : 0;
    if (moved != 2) continue;
    plans.push_back(std::make_shared<GpuTransposePlan>(context, group.root, read, along));
    return;
  }
}

}  // namespace

extern const PlanKind gpu_transpose_kind{"gpu_transpose", make_gpu_transpose, nullptr,
                                         target::DeviceKind::kGpu};

}  // namespace tensorsmith::space
