// Finds the convolutions that the algorithm has rewritten.
#include "space/plans/winograd/winograd_plan.h"

namespace tensorsmith::space {

namespace {

// Each step inserts five stages before the one that it rewrites.
constexpr int kInserted = 5;

void match_winograd(const PlanContext& context, Patterns& patterns) {
  // The last convolution is rewritten first, so later steps move the stages of earlier ones.
  int moved = 0;
  for (size_t i = context.rewriting.size(); i-- > 0;) {
    const auto* step = std::get_if<sched::Winograd>(&context.rewriting[i]);
    if (step == nullptr) continue;
    auto found = std::make_unique<WinogradStages>();
    moved += kInserted;
    const size_t result = step->stage + moved;
    found->m = step->m;
    found->data = StageId(result - 5);
    found->rows = StageId(result - 4);
    found->input = StageId(result - 3);
    found->product = StageId(result - 2);
    found->columns = StageId(result - 1);
    found->result = StageId(result);
    for (const auto& read : context.stage(found->product).reads)
      if (read.producer != found->input) found->weights = read.producer;
    found->anchor = found->result;
    found->inside = {found->columns, found->product, found->input, found->rows, found->data};
    found->never_inlined = found->inside;
    found->never_inlined.push_back(found->result);
    found->required = true;
    found->needed_axes = {kChannel, kHeight, kWidth};  // the loops follow all axes except for the batch
    patterns.push_back(std::move(found));
  }
}

void make_winograd(const PlanContext& context, const Group& group, Plans& plans) {
  if (const auto* stages = dynamic_cast<const WinogradStages*>(group.pattern))
    plans.push_back(std::make_shared<WinogradPlan>(context, group.root, *stages));
}

}  // namespace

extern const PlanKind winograd_kind{"winograd", make_winograd, match_winograd};

}  // namespace tensorsmith::space
