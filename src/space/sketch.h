// Sketches: for each group of stages one plan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "space/plan.h"

namespace tensorsmith::space {

struct Sketch {
  std::vector<std::shared_ptr<const Plan>> plans;
  std::vector<size_t> offsets;                   // of each plan's decisions; one more at the end
  std::vector<DecisionSlot> slots;               // of all plans
  std::vector<std::pair<size_t, size_t>> owner;  // by slot: plan and its slot number
  bool inlines = true;                           // applies the always-inline rule
  std::string description;

  size_t width() const { return offsets.back(); }
  Decisions of_plan(Decisions d, size_t plan) const {
    return d.subspan(offsets[plan], offsets[plan + 1] - offsets[plan]);
  }
};

// Operations that every sketch but the plain one inlines (rule AlwaysInline, see sketch_rules.cc).
std::vector<bool> always_inlined(const WorkloadAnalysis& analysis, const ir::Workload& workload);

// All sketches, best structures first; the last one is plain loops, legal for every workload. plain: a
// context without inlining.
std::vector<Sketch> make_sketches(const PlanContext& context, const PlanContext& plain);

}  // namespace tensorsmith::space
