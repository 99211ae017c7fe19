// One thread per output, in blocks of a few warps: legal for every stage of a GPU program.
#include <algorithm>
#include <cmath>

#include "space/estimate/gpu_kernel.h"
#include "space/gpu_steps.h"
#include "space/plan_kind.h"

namespace tensorsmith::space {

namespace {

constexpr int64_t kWarps = 4;

class GpuPlainPlan final : public Plan {
 public:
  GpuPlainPlan(const PlanContext& context, StageId output) : Plan(context), output_(output) {}

  std::string describe() const override { return "plain " + context_.op(output_).name; }

  void emit(TraceMaker& maker, Decisions) const override {
    const auto& leaves = maker.leaves(output_);
    const std::ptrdiff_t rank = maker.num_spatial(output_);
    const LoopId all = fuse_or_unit(maker, output_, {leaves.begin(), leaves.begin() + rank});
    const auto made = maker.split(output_, all, {threads()}, sched::TailPolicy::kPredicate);
    maker.annotate(output_, made[0], sched::Annotation::kBlockX);
    maker.annotate(output_, made[1], sched::Annotation::kThreadX);
  }

  Status check(Decisions) const override { return {}; }

  double estimate(Decisions, EstimateParts*) const override {
    const auto& m = context_.machine.gpu;
    const auto& info = context_.stage(output_);
    const double points = info.spatial_points(), steps = info.reduce_points();
    const double reads = static_cast<double>(info.reads.size()) + 1;
    GpuKernel kernel;
    kernel.block.threads = threads();
    kernel.blocks = std::max(1.0, std::ceil(points / threads()));
    const double warps = std::ceil(static_cast<double>(threads()) / static_cast<double>(m.warp));
    kernel.products = warps * steps * info.flops_per_point;
    kernel.steps = warps * steps;
    kernel.memory.add(contiguous_access(m.warp, 1, info.element_bytes), warps * steps * reads);
    kernel.bytes_once = points * reads * info.element_bytes;
    kernel.waits = steps;
    return gpu_seconds(m, kernel);
  }

 private:
  int64_t threads() const {
    return std::min(kWarps * context_.machine.gpu.warp, context_.machine.gpu.max_threads);
  }

  StageId output_;
};

void make_gpu_plain(const PlanContext& context, const Group& group, Plans& plans) {
  plans.push_back(std::make_shared<GpuPlainPlan>(context, group.root));
}

}  // namespace

extern const PlanKind gpu_plain_kind{"gpu_plain", make_gpu_plain, nullptr, target::DeviceKind::kGpu};

}  // namespace tensorsmith::space
