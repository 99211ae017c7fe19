// Only a parallel outermost loop: legal for every stage.
#include "space/estimate/plan_number.h"
#include "space/plan_kind.h"

namespace tensorsmith::space {

namespace {

class PlainPlan final : public Plan {
 public:
  PlainPlan(const PlanContext& context, StageId output) : Plan(context), output_(output) {}

  std::string describe() const override { return "plain " + context_.op(output_).name; }
  void emit(TraceMaker& maker, Decisions) const override {
    if (context_.threads() <= 1) return;
    const auto& info = context_.stage(output_);
    for (const AxisId a : info.spatial_axes()) {
      if (info.extent(a) <= 1) continue;
      maker.annotate(output_, maker.axis_loops(output_)[a], sched::Annotation::kParallel);
      return;
    }
  }
  Status check(Decisions) const override { return {}; }
  double estimate(Decisions, EstimateParts* parts) const override {
    if (parts != nullptr) parts->plan = plan_number(PlanNumber::kPlain);
    const auto& info = context_.stage(output_);
    const double reads = info.reads.size();
    return info.spatial_points() * info.reduce_points() *
           (info.flops_per_point + reads + context_.machine.fitted().plain_point) *
           context_.machine.seconds_per_cycle();
  }

 private:
  StageId output_;
};

void make_plain(const PlanContext& context, const Group& group, Plans& plans) {
  plans.push_back(std::make_shared<PlainPlan>(context, group.root));
}

}  // namespace

extern const PlanKind plain_kind{"plain", make_plain};

}  // namespace tensorsmith::space
