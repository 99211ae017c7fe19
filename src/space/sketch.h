// Sketches: one plan for each group of stages.
#pragma once

#include <string>
#include <vector>

#include "space/algorithm.h"
#include "space/plan_kind.h"

namespace tensorsmith::space {

struct Sketch {
  const Algorithm* algorithm = nullptr;  // the algorithm that the plans belong to
  Plans plans;
  std::vector<size_t> offsets;                   // of each plan's decisions; one more at the end
  std::vector<DecisionSlot> slots;               // of all plans
  std::vector<std::pair<size_t, size_t>> owner;  // by slot: the plan and its slot number
  bool inlines = true;                           // applies the always-inline rule
  std::string description;

  size_t width() const { return offsets.back(); }
  Decisions of_plan(Decisions d, size_t plan) const {
    return d.subspan(offsets[plan], offsets[plan + 1] - offsets[plan]);
  }
};

struct SketchList {
  std::vector<Sketch> sketches;
  double left_out = 0;  // number of combinations of plans that are left out
};

// Returns the sketches of an algorithm, usual plans first.
SketchList make_sketches(const Algorithm& algorithm);
// Returns plain loops with nothing inlined: legal for every workload.
Sketch make_plain_sketch(const Algorithm& algorithm);

}  // namespace tensorsmith::space
