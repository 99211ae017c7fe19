#include "space/sketch.h"

#include "space/grouping.h"

namespace tensorsmith::space {

namespace {

Plans alternatives(const PlanContext& context, const Group& group) {
  Plans plans;
  for (const PlanKind* kind : plan_kinds())
    if (kind != &fallback_kind()) kind->make(context, group, plans);
  return plans;
}

Sketch assemble(Plans plans, bool inlines) {
  Sketch sketch;
  sketch.plans = std::move(plans);
  sketch.inlines = inlines;
  sketch.offsets.push_back(0);
  for (size_t p = 0; p < sketch.plans.size(); ++p) {
    const Plan& plan = *sketch.plans[p];
    for (size_t s = 0; s < plan.slots().size(); ++s) {
      sketch.slots.push_back(plan.slots()[s].decision);
      sketch.owner.emplace_back(p, s);
    }
    sketch.offsets.push_back(sketch.offsets.back() + plan.width());
    if (!sketch.description.empty()) sketch.description += "; ";
    sketch.description += plan.describe();
  }
  return sketch;
}

// Every choice of one plan a group, at most `limit` of them (the first plan of a group is its usual one).
void combine(const PlanContext& context, const std::vector<Group>& groups, size_t limit,
             std::vector<Sketch>& sketches) {
  std::vector<Plans> choices;
  for (const auto& group : groups) choices.push_back(alternatives(context, group));
  std::vector<size_t> at(choices.size(), 0);
  for (size_t made = 0; made < limit; ++made) {
    Plans plans;
    for (size_t g = 0; g < choices.size(); ++g) plans.push_back(choices[g][at[g]]);
    sketches.push_back(assemble(std::move(plans), true));
    size_t g = 0;
    while (g < at.size() && ++at[g] == choices[g].size()) at[g++] = 0;
    if (g == at.size()) break;
  }
}

}  // namespace

std::vector<Sketch> make_sketches(const Algorithm& algorithm) {
  const PlanContext& context = algorithm.context;
  std::vector<Sketch> sketches;
  const std::vector<Group> fused = make_groups(context, true);
  combine(context, fused, 16, sketches);
  const std::vector<Group> separate = make_groups(context, false);
  if (separate.size() != fused.size()) combine(context, separate, 2, sketches);
  for (auto& sketch : sketches) sketch.algorithm = &algorithm;
  return sketches;
}

Sketch make_plain_sketch(const Algorithm& algorithm) {
  const PlanContext& context = algorithm.plain;
  Plans plans;
  for (size_t s = 0; s < context.analysis->stages.size(); ++s) {
    if (context.stage(static_cast<int>(s)).placeholder) continue;
    Group group;
    group.root = static_cast<int>(s);
    fallback_kind().make(context, group, plans);
  }
  Sketch sketch = assemble(std::move(plans), false);
  sketch.algorithm = &algorithm;
  return sketch;
}

}  // namespace tensorsmith::space
