// Parallel outermost loop, and optionally an unrolled innermost one. For elementwise stages.
#include "space/plan_kind.h"

namespace tensorsmith::space {

namespace {

class ToyPlan final : public Plan {
 public:
  ToyPlan(const PlanContext& context, StageId output) : Plan(context), output_(output) {
    unroll_slot_ = add_category(context.op(output).name + ".toy_unroll", DecisionRole::kUnroll, {0.5, 0.5});
  }

  std::string describe() const override { return "toy " + context_.op(output_).name; }
  void emit(TraceMaker& maker, Decisions d) const override {
    std::vector<LoopId> loops;
    for (const AxisId a : context_.stage(output_).spatial_axes())
      if (context_.stage(output_).extent(a) > 1) loops.push_back(maker.axis_loops(output_)[a]);
    if (loops.empty()) return;
    if (context_.threads() > 1) maker.annotate(output_, loops.front(), sched::Annotation::kParallel);
    if (loops.size() > 1 && unrolls(d)) maker.annotate(output_, loops.back(), sched::Annotation::kUnroll);
  }
  Status check(Decisions d) const override {
    const auto& info = context_.stage(output_);
    const auto extents = info.spatial_axes();
    for (const AxisId a : extents)
      if (unrolls(d) && info.extent(a) > kMostUnrolled) return refuse(output_, "the unrolled loop is long");
    return {};
  }
  double estimate(Decisions d, EstimateParts*) const override {
    const double points = context_.stage(output_).spatial_points();
    return points * (unrolls(d) ? 1 : 2) * context_.machine.seconds_per_cycle();
  }

 private:
  static constexpr int64_t kMostUnrolled = 64;

  bool unrolls(Decisions d) const { return category(d, unroll_slot_) == 1; }

  StageId output_;
  size_t unroll_slot_ = kNone;
};

void make_toy(const PlanContext& context, const Group& group, Plans& plans) {
  if (group.anchor.valid() || !group.attached.empty() || context.stage(group.root).reduction) return;
  plans.push_back(std::make_shared<ToyPlan>(context, group.root));
}

}  // namespace

extern const PlanKind toy_kind{"toy", make_toy};

}  // namespace tensorsmith::space
