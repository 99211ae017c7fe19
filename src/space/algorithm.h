// How the operations of a workload are computed before any loop is scheduled: as they are defined, or
// rewritten into other operations that give the same results. The sketch rules see the rewritten operations.
//
// Accuracy of Winograd's minimal filtering. Its sums have other terms than the direct sum, with
// factors of up to 27/8. Rounding errors are therefore larger by a factor that depends on m alone,
// since the sum over channels is between the transforms. For values of either sign and similar
// size, the largest error of an output relative to the root mean square of all outputs is about
// 1e-6 for m = 2 and below 3e-5 for m = 4 (tests/space/winograd_test.cc); measurements accept 1e-3
// (measure/compare.h). Larger tiles, with factors of 32 for m = 6, would come too close to that and
// are not part of the space.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "space/plan_context.h"

namespace tensorsmith::space {

struct Algorithm {
  // `made_by`: a builder on the original workload that has applied the steps.
  Algorithm(const sched::ScheduleBuilder& made_by, const EstimateMachine& machine);
  Algorithm(const Algorithm&) = delete;
  Algorithm& operator=(const Algorithm&) = delete;

  std::string label;               // prefix of its sketches' descriptions; empty if they differ without it
  ir::Workload workload;           // the rewritten operations
  std::vector<sched::Step> steps;  // the steps that rewrite them
  WorkloadAnalysis analysis;
  PlanContext context, plain;  // `plain` inlines nothing
  // The schedule after `steps`, and the one after inlining what context.inlined says, too (none if
  // that is refused).
  sched::Schedule start;
  std::optional<sched::Schedule> inlined_start;
  // Returns the steps that inline what context.inlined says. Consumers come first, so that a
  // producer's body is copied once into the final reader and not through every stage of the chain.
  std::vector<sched::Step> inlining() const;
};

// Returns the algorithms for a workload. The first one is the workload as it is. On CPUs, the next
// one (if there are any) has all contractions of 8-bit integers and of bf16 elements rewritten by
// sched::Dot or, for 8-bit integers, sched::Dot16; then, for each tile size, one has every 3x3
// convolution rewritten that sched::Winograd accepts. On GPUs, the others cut reductions whose
// outputs do not fill the device into parts that separate blocks compute, by sched::Rfactor
// ("split-K").
std::vector<std::unique_ptr<const Algorithm>> make_algorithms(const ir::Workload& workload,
                                                              const EstimateMachine& machine, bool winograd);

}  // namespace tensorsmith::space
