// Makes steps with stable handles: stages and loops keep their number while steps insert stages and change
// leaf positions. Mirrors what each step does to positions; legality is sched::apply's matter. The steps
// become a trace, or are applied to a schedule at once, which is what the trace's replay gives.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/step.h"

namespace tensorsmith::space {

class TraceMaker {
 public:
  using StageId = int;  // the operation's index in the workload, or a number given by a cache or rfactor step
  using LoopId = int;

  // steps: those that made the workload from the one that the trace is of.
  explicit TraceMaker(const ir::Workload& workload, std::vector<sched::Step> steps = {});
  // Applies the steps to `schedule`, of whose stages the workload's operations are the first definitions.
  TraceMaker(const ir::Workload& workload, sched::Schedule& schedule, sched::Rewrites& rewrites);

  // The loops of a stage, outer to inner.
  const std::vector<LoopId>& leaves(StageId stage) const { return stages_[static_cast<size_t>(stage)]; }

  // Outer to inner, lengths.size() + 1 loops.
  std::vector<LoopId> split(StageId stage, LoopId loop, std::vector<int64_t> lengths, sched::TailPolicy tail);
  LoopId fuse(StageId stage, const std::vector<LoopId>& loops);
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
  size_t num_spatial(StageId stage) const { return num_spatial_[static_cast<size_t>(stage)]; }

 private:
  void make_stages(const ir::Workload& workload);
  void add(sched::Step step);
  int position(StageId stage) const;
  int leaf(StageId stage, LoopId loop) const;
  StageId insert_stage(size_t at, size_t spatial, size_t reduce);

  std::vector<std::vector<LoopId>> stages_;  // leaves by handle
  std::vector<size_t> num_spatial_;          // root spatial axes by handle
  std::vector<size_t> num_reduce_;
  std::vector<StageId> order_;  // handle by position
  LoopId next_loop_ = 0;
  std::vector<sched::Step> steps_;
  sched::Schedule* schedule_ = nullptr;  // null: the steps are kept
  sched::Rewrites* rewrites_ = nullptr;
  Status status_;
};

}  // namespace tensorsmith::space
