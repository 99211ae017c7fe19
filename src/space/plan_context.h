// The data that the plans of an algorithm share: its operations, their analysis, and the machine.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sched/step.h"
#include "space/analysis.h"
#include "space/estimate/machine.h"

namespace tensorsmith::space {

// Stages that one kind of plan computes as a whole. The kind finds them (PlanKind::match) and
// derives a struct that names the role of each stage.
struct Pattern {
  virtual ~Pattern() = default;

  StageId anchor;                      // the stage whose values other stages read
  std::vector<StageId> inside;         // stages that it is computed from, readers before producers
  std::vector<StageId> never_inlined;  // stages of these that are not inlined although cheap to recompute
  bool required = false;               // no other kind of plan can compute these stages
  // Axes of the anchor that the group's root must have, even where their extent is 1.
  std::vector<AxisId> needed_axes;
};

// Must outlive the plans.
struct PlanContext {
  const ir::Workload* workload = nullptr;
  const WorkloadAnalysis* analysis = nullptr;
  std::span<const sched::Step> rewriting;  // the steps that made the workload
  EstimateMachine machine;
  IdVector<StageId, bool> inlined;  // stages that are always inlined in this space
  std::vector<std::unique_ptr<const Pattern>> patterns;

  const StageInfo& stage(StageId s) const { return analysis->stages[s]; }
  int threads() const { return static_cast<int>(machine.cores); }  // of the compiled program
  const ir::Operation& op(StageId s) const { return *workload->operations[s.place()]; }
  std::string axis_name(StageId s, AxisId axis) const;
};

// Largest definition, written out, that plans make by inlining. It is less than what the step
// allows, because indices also grow when they are substituted into each other.
inline constexpr int64_t kMaxWrittenSize = sched::kMaxInlinedSize / 4;
// Returns the size of a stage's definition when it is written out with the inlined producers in it,
// whose sizes are in `written`.
int64_t written_size(const ir::Workload& workload, StageId stage, const IdVector<StageId, bool>& inlined,
                     const IdVector<StageId, int64_t>& written);
// Returns whether no definition becomes larger than kMaxWrittenSize with these operations inlined.
bool inlining_fits(const ir::Workload& workload, const IdVector<StageId, bool>& inlined);

// Returns the reads of a stage, with those of always-inlined producers replaced by the reads of
// these producers. Equal reads are listed once: x * sigmoid(x) with both operations inlined is one
// read of x.
std::vector<Read> effective_reads(const PlanContext& context, StageId stage);

// Returns, for each spatial axis of `stage`, the axis of `reader` that alone indexes it, through
// inlined stages. If both are the same stage, these are its own axes; of several reads, the last
// one counts.
AxisMap axes_in(const PlanContext& context, StageId reader, StageId stage);

}  // namespace tensorsmith::space
