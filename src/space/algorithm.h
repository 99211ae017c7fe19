// How the operations of a workload are computed before any loop is scheduled: as they are defined, or
// rewritten into other operations that give the same results. The sketch rules see the rewritten operations.
//
// Accuracy of Winograd's filtering. Its sums have other terms than the direct ones, with factors up to 27/8,
// so rounding errors are larger by a factor that depends on m alone: the sum over channels lies between the
// transforms. For values of either sign and similar size the largest error of an output, relative to the root
// mean square of all outputs, is about 1e-6 for m = 2 and below 3e-5 for m = 4
// (tests/space/winograd_test.cc), where 1e-3 is what measurements accept (measure/compare.h). Larger tiles,
// with factors of 32 for m = 6, would come too near and are no part of the space.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "space/plan_context.h"

namespace tensorsmith::space {

struct Algorithm {
  // made_by: a builder on the workload that has applied the steps.
  Algorithm(const sched::ScheduleBuilder& made_by, const Machine& machine, int threads);
  Algorithm(const Algorithm&) = delete;
  Algorithm& operator=(const Algorithm&) = delete;

  std::string label;               // what a sketch's description begins with, where algorithms look alike
  ir::Workload workload;           // the rewritten operations
  std::vector<sched::Step> steps;  // that make them
  WorkloadAnalysis analysis;
  PlanContext context, plain;  // the second inlines nothing
  // After the steps, and after what context.inlined says too; none if that is refused.
  sched::Schedule start;
  std::optional<sched::Schedule> inlined_start;
  // The steps that inline what context.inlined says. Consumers first: a producer's body is then copied once
  // into the final reader, not through every stage of the chain.
  std::vector<sched::Step> inlining() const;
};

// The first one is the workload as it is; then, where there are any, all contractions of 8-bit integers and
// of bf16 elements rewritten by sched::Dot; then every 3x3 convolution that sched::Winograd takes rewritten,
// with each tile size. On GPUs instead of these: reductions whose outputs do not fill the device are cut in parts
// that blocks of their own compute, by sched::Rfactor ("split-K").
std::vector<std::unique_ptr<const Algorithm>> make_algorithms(const ir::Workload& workload,
                                                              const Machine& machine, int threads,
                                                              bool winograd);

}  // namespace tensorsmith::space
