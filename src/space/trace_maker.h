// Makes steps with stable handles: stages and loops keep their number while steps insert stages and change
// leaf positions. Mirrors what each step does to positions; legality is sched::apply's matter. The steps
// become a trace, or are applied to a schedule at once, which is what the trace's replay gives.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/step.h"
#include "space/ids.h"

namespace tensorsmith::space {

class TraceMaker {
 public:
  // steps: those that made the workload from the one that the trace is of.
  explicit TraceMaker(const ir::Workload& workload, std::vector<sched::Step> steps = {});
  // Applies the steps to `schedule`, of whose stages the workload's operations are the first definitions.
  TraceMaker(const ir::Workload& workload, sched::Schedule& schedule, sched::Rewrites& rewrites);

  // The loops of a stage, outer to inner.
  const std::vector<LoopId>& leaves(StageId stage) const { return stages_[stage].leaves; }
  // The same of a stage whose loops no step has changed: one an axis.
  IdVector<AxisId, LoopId> axis_loops(StageId stage) const;

  // Outer to inner, lengths.size() + 1 loops.
  std::vector<LoopId> split(StageId stage, LoopId loop, std::vector<int64_t> lengths, sched::TailPolicy tail);
  LoopId fuse(StageId stage, std::span<const LoopId> loops);
  // A new outermost loop of extent 1, of a stage that has no loop to be bound.
  LoopId unit_loop(StageId stage);
  // The stage's whole loop order; emits nothing if that is the order already.
  void reorder(StageId stage, const std::vector<LoopId>& order);
  void annotate(StageId stage, LoopId loop, sched::Annotation annotation);
  void auto_unroll(StageId stage, int64_t max_step);
  void compute_at(StageId stage, StageId target, LoopId loop);
  void compute_inline(StageId stage);
  void pack(StageId stage, sched::Layout layout);
  // The axis of the loop, which is whole, has a stride of k * factor + offset elements.
  void storage_align(StageId stage, LoopId loop, int64_t factor, int64_t offset);
  // The new stage, before `stage`, that computes; `stage` copies from it.
  StageId cache_write(StageId stage, ir::MemoryScope scope);
  // The new stage, after `stage`, that copies; the readers read it. dims: rank of the stage's output.
  StageId cache_read(StageId stage, ir::MemoryScope scope, const std::vector<StageId>& readers, size_t dims);
  // The new stage, before `stage`, with the reduce loop as a spatial axis at factor_axis; `stage` reduces
  // over it.
  StageId rfactor(StageId stage, LoopId loop, size_t factor_axis);

  sched::Trace take() && { return sched::Trace{std::move(steps_)}; }
  // Of the first step that was refused; none is applied after it.
  const Status& status() const { return status_; }
  size_t num_spatial(StageId stage) const { return stages_[stage].num_spatial; }

 private:
  void make_stages(const ir::Workload& workload);
  void add(sched::Step step);
  int position(StageId stage) const;
  int leaf(StageId stage, LoopId loop) const;
  StageId insert_stage(int at, size_t spatial, size_t reduce);
  std::vector<LoopId> new_loops(size_t count);

  struct Stage {
    std::vector<LoopId> leaves;
    size_t num_spatial = 0, num_reduce = 0;  // of the root axes
  };
  IdVector<StageId, Stage> stages_;
  std::vector<StageId> order_;  // by position
  LoopId next_loop_{0};
  std::vector<sched::Step> steps_;
  sched::Schedule* schedule_ = nullptr;  // null: the steps are kept
  sched::Rewrites* rewrites_ = nullptr;
  Status status_;
};

}  // namespace tensorsmith::space
