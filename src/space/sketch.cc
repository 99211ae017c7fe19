#include "space/sketch.h"

#include "space/grouping.h"

namespace tensorsmith::space {

namespace {

// Returns all plans of the group for the device, except for the fallback.
Plans alternatives(const PlanContext& context, const Group& group) {
  Plans plans;
  const target::DeviceKind device = context.machine.kind;
  for (const PlanKind* kind : plan_kinds())
    if (kind->device == device && kind != &fallback_kind(device)) kind->make(context, group, plans);
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

// For each group, the index of one of its plans; 0 is the usual plan.
using Choice = std::vector<size_t>;

// Adds the choices with this many unusual plans in the groups from g on, until there are `limit`
// choices in all.
void add_choices(const std::vector<Plans>& plans, size_t g, size_t unusual, size_t limit, Choice& at,
                 std::vector<Choice>& choices) {
  if (choices.size() == limit || unusual > plans.size() - g) return;
  if (g == plans.size()) {
    choices.push_back(at);
    return;
  }
  for (size_t k = 1; unusual > 0 && k < plans[g].size(); ++k) {
    at[g] = k;
    add_choices(plans, g + 1, unusual - 1, limit, at, choices);
  }
  at[g] = 0;
  add_choices(plans, g + 1, unusual, limit, at, choices);
}

// Adds the sketches of all choices of one plan per group if there are at most `limit`, else of
// those with the fewest unusual plans. Returns how many choices are left out.
double combine(const PlanContext& context, const std::vector<Group>& groups, size_t limit,
               std::vector<Sketch>& sketches) {
  std::vector<Plans> plans;
  double all = 1;
  for (const auto& group : groups) {
    plans.push_back(alternatives(context, group));
    all *= plans.back().size();
  }
  std::vector<Choice> choices;
  Choice at(plans.size(), 0);
  if (all > limit) {
    for (size_t unusual = 0; unusual <= plans.size(); ++unusual)
      add_choices(plans, 0, unusual, limit, at, choices);
  } else {
    for (size_t g = 0; g < at.size() || choices.empty();) {
      choices.push_back(at);
      for (g = 0; g < at.size() && ++at[g] == plans[g].size(); ++g) at[g] = 0;
    }
  }
  for (const Choice& choice : choices) {
    Plans chosen;
    for (size_t g = 0; g < plans.size(); ++g) chosen.push_back(plans[g][choice[g]]);
    sketches.push_back(assemble(std::move(chosen), true));
  }
  return all - choices.size();
}

// Most sketches of an algorithm; each costs estimates and a share of the samples.
constexpr size_t kMostSketches = 16;
// Most sketches in which the stages of a row have loops of their own. They are rarely faster than those
// with fused rows.
constexpr size_t kMostSeparate = 2;

}  // namespace

SketchList make_sketches(const Algorithm& algorithm) {
  const PlanContext& context = algorithm.context;
  SketchList list;
  const std::vector<Group> fused = make_groups(context, true);
  list.left_out = combine(context, fused, kMostSketches, list.sketches);
  const std::vector<Group> separate = make_groups(context, false);
  if (separate.size() != fused.size())
    list.left_out += combine(context, separate, kMostSeparate, list.sketches);
  for (auto& sketch : list.sketches) {
    sketch.algorithm = &algorithm;
    sketch.description = algorithm.label + sketch.description;
  }
  return list;
}

Sketch make_plain_sketch(const Algorithm& algorithm) {
  const PlanContext& context = algorithm.plain;
  Plans plans;
  for (const StageId s : context.analysis->stages.ids()) {
    if (context.stage(s).placeholder) continue;
    Group group;
    group.root = s;
    fallback_kind(context.machine.kind).make(context, group, plans);
  }
  Sketch sketch = assemble(std::move(plans), false);
  sketch.algorithm = &algorithm;
  return sketch;
}

}  // namespace tensorsmith::space
