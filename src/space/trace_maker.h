// Makes steps with stable handles: stages and loops keep their ids when steps insert stages and
// change the positions of leaves. Mirrors what each step does to positions; sched::apply checks
// legality. The steps become a trace, or are applied to a schedule at once with the same result as
// replaying the trace.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/step.h"
#include "space/ids.h"

namespace tensorsmith::space {

class TraceMaker {
 public:
  // `steps`: those that made this workload from the one that the trace is for.
  explicit TraceMaker(const ir::Workload& workload, std::vector<sched::Step> steps = {});
  // Applies the steps to `schedule`, whose stages are the workload's operations, possibly inlined.
  TraceMaker(const ir::Workload& workload, sched::Schedule& schedule, sched::Rewrites& rewrites);

  // Returns the loops of a stage, outer to inner.
  const std::vector<LoopId>& leaves(StageId stage) const { return stages_[stage].leaves; }
  // Returns the loops of a stage whose loops no step has changed: one per axis.
  IdVector<AxisId, LoopId> axis_loops(StageId stage) const;

  // Returns lengths.size() + 1 loops, outer to inner.
  std::vector<LoopId> split(StageId stage, LoopId loop, std::vector<int64_t> lengths, sched::TailPolicy tail);
  LoopId fuse(StageId stage, std::span<const LoopId> loops);
  // Returns a new outermost loop of extent 1, for a stage without a loop that can be bound.
  LoopId unit_loop(StageId stage);
  // Sets the complete loop order of the stage; emits nothing if it is the current order.
  void reorder(StageId stage, const std::vector<LoopId>& order);
  void annotate(StageId stage, LoopId loop, sched::Annotation annotation);
  void auto_unroll(StageId stage, int64_t max_step);
  void compute_at(StageId stage, StageId target, LoopId loop);
  void compute_inline(StageId stage);
  void pack(StageId stage, sched::Layout layout);
  // Gives the axis of the loop, which must not be split, a stride of k * factor + offset elements.
  void storage_align(StageId stage, LoopId loop, int64_t factor, int64_t offset);
  // Returns the new stage, before `stage`, which computes; `stage` copies from it.
  StageId cache_write(StageId stage, ir::MemoryScope scope);
  // Returns the new stage, after `stage`, which copies; the readers read it. `dims`: rank of the
  // stage's output.
  StageId cache_read(StageId stage, ir::MemoryScope scope, const std::vector<StageId>& readers, size_t dims);
  // Returns the new stage, before `stage`, in which the reduce loop is a spatial axis at
  // factor_axis; `stage` reduces over that axis.
  StageId rfactor(StageId stage, LoopId loop, size_t factor_axis);

  sched::Trace take() && { return sched::Trace{std::move(steps_)}; }
  // The status of the first step that was refused; no step is applied after it.
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
    size_t num_spatial = 0, num_reduce = 0;  // numbers of root axes
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
