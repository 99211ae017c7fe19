// What the plans of an algorithm share: its operations, what is known of them, the machine.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sched/step.h"
#include "space/analysis.h"
#include "space/estimate/machine.h"

namespace tensorsmith::space {

// Stages that one kind of plan computes as a whole. The kind finds them (PlanKind::match) and derives a struct
// of its own that says which stage is what.
struct Pattern {
  virtual ~Pattern() = default;

  StageId anchor;                      // the stage whose values other stages read
  std::vector<StageId> inside;         // what it is computed from, readers before producers
  std::vector<StageId> never_inlined;  // of all these, though they are cheap to recompute
  bool required = false;               // no other kind of plan can compute them
  // Axes of the anchor that the group's root must have, even where their extent is 1.
  std::vector<AxisId> needed_axes;
};

// Outlives the plans.
struct PlanContext {
  const ir::Workload* workload = nullptr;
  const WorkloadAnalysis* analysis = nullptr;
  std::span<const sched::Step> rewriting;  // the steps that made the workload
  Machine machine;
  int threads = 1;
  IdVector<StageId, bool> inlined;  // always, in this space
  std::vector<std::unique_ptr<const Pattern>> patterns;

  const StageInfo& stage(StageId s) const { return analysis->stages[s]; }
  const ir::Operation& op(StageId s) const { return *workload->operations[s.place()]; }
  std::string axis_name(StageId s, AxisId axis) const;
};

// Largest definition that plans make by inlining, written out. Less than what the step allows, because
// indices grow too when they are written into each other.
inline constexpr int64_t kMaxWrittenSize = sched::kMaxInlinedSize / 4;
// Size of a stage's definition, written out, with the inlined producers in it, whose sizes are known.
int64_t written_size(const ir::Workload& workload, StageId stage, const IdVector<StageId, bool>& inlined,
                     const IdVector<StageId, int64_t>& written);
// Whether no definition becomes larger than kMaxWrittenSize with these operations inlined.
bool inlining_fits(const ir::Workload& workload, const IdVector<StageId, bool>& inlined);

// The reads of a stage with those of always-inlined producers replaced by what they read themselves; equal
// ones are listed once. x * sigmoid(x) with both operations inlined is one read of x.
std::vector<Read> effective_reads(const PlanContext& context, StageId stage);

// By spatial axis of `stage`: the axis of `reader` that indexes it alone, through inlined stages. The same axes where
// both are one stage; of several reads, those of the last.
AxisMap axes_in(const PlanContext& context, StageId reader, StageId stage);

}  // namespace tensorsmith::space
