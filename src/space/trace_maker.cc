#include "space/trace_maker.h"

#include <algorithm>

#include "base/result.h"

namespace tensorsmith::space {

TraceMaker::TraceMaker(const ir::Workload& workload, std::vector<sched::Step> steps)
    : steps_(std::move(steps)) {
  make_stages(workload);
}

TraceMaker::TraceMaker(const ir::Workload& workload, sched::Schedule& schedule, sched::Rewrites& rewrites)
    : schedule_(&schedule), rewrites_(&rewrites) {
  make_stages(workload);
}

void TraceMaker::add(sched::Step step) {
  if (schedule_ == nullptr) {
    steps_.push_back(std::move(step));
  } else if (status_.ok()) {
    status_ = sched::apply(*schedule_, step, {}, *rewrites_);
  }
}

void TraceMaker::make_stages(const ir::Workload& workload) {
  const size_t stages = workload.operations.size() + 4;
  stages_.reserve(stages);
  order_.reserve(stages);
  int at = 0;
  for (const ir::OperationRef& op : workload.operations)
    insert_stage(at++, op->spatial.size(), op->reduce.size());
}

IdVector<AxisId, LoopId> TraceMaker::axis_loops(StageId stage) const {
  const Stage& of = stages_[stage];
  TS_CHECK(of.leaves.size() == of.num_spatial + of.num_reduce,
           "TraceMaker: the loops of the stage are no longer its axes");
  IdVector<AxisId, LoopId> loops;
  loops.assign(of.leaves.begin(), of.leaves.end());
  return loops;
}

std::vector<LoopId> TraceMaker::new_loops(size_t count) {
  std::vector<LoopId> loops(count);
  for (LoopId& loop : loops) {
    loop = next_loop_;
    ++next_loop_;
  }
  return loops;
}

StageId TraceMaker::insert_stage(int at, size_t spatial, size_t reduce) {
  const StageId stage = stages_.push_back({new_loops(spatial + reduce), spatial, reduce});
  order_.insert(order_.begin() + at, stage);
  return stage;
}

int TraceMaker::position(StageId stage) const {
  const auto it = std::find(order_.begin(), order_.end(), stage);
  TS_CHECK(it != order_.end(), "TraceMaker: unknown stage");
  return it - order_.begin();
}

int TraceMaker::leaf(StageId stage, LoopId loop) const {
  const auto& loops = leaves(stage);
  const auto it = std::find(loops.begin(), loops.end(), loop);
  TS_CHECK(it != loops.end(), "TraceMaker: loop is not a leaf of the stage");
  return it - loops.begin();
}

std::vector<LoopId> TraceMaker::split(StageId stage, LoopId loop, std::vector<int64_t> lengths,
                                      sched::TailPolicy tail) {
  const int at = leaf(stage, loop);
  std::vector<LoopId> made = new_loops(lengths.size() + 1);
  auto& loops = stages_[stage].leaves;
  const auto where = loops.erase(loops.begin() + at);
  loops.insert(where, made.begin(), made.end());
  add(sched::Split{position(stage), at, std::move(lengths), true, tail});
  return made;
}

LoopId TraceMaker::fuse(StageId stage, std::span<const LoopId> fused) {
  TS_CHECK(!fused.empty(), "TraceMaker: nothing to fuse");
  if (fused.size() == 1) return fused.front();
  sched::Fuse step{position(stage), {}};
  for (LoopId loop : fused) step.iterators.push_back(leaf(stage, loop));
  auto& loops = stages_[stage].leaves;
  const auto first = loops.begin() + step.iterators.front();
  const LoopId made = new_loops(1).front();
  *first = made;
  loops.erase(first + 1, first + std::ssize(fused));
  add(std::move(step));
  return made;
}

LoopId TraceMaker::unit_loop(StageId stage) {
  const LoopId made = new_loops(1).front();
  auto& loops = stages_[stage].leaves;
  loops.insert(loops.begin(), made);
  add(sched::Fuse{position(stage), {}});
  return made;
}

void TraceMaker::reorder(StageId stage, const std::vector<LoopId>& order) {
  auto& loops = stages_[stage].leaves;
  TS_CHECK(order.size() == loops.size(), "TraceMaker: reorder names all loops");
  if (order == loops) return;
  sched::Reorder step{position(stage), {}};
  for (LoopId loop : order) step.order.push_back(leaf(stage, loop));
  loops = order;
  add(std::move(step));
}

void TraceMaker::annotate(StageId stage, LoopId loop, sched::Annotation annotation) {
  add(sched::Annotate{position(stage), leaf(stage, loop), annotation});
}

void TraceMaker::auto_unroll(StageId stage, int64_t max_step) {
  add(sched::Unroll{position(stage), max_step});
}

void TraceMaker::compute_at(StageId stage, StageId target, LoopId loop) {
  add(sched::ComputeAt{position(stage), position(target), leaf(target, loop)});
}

void TraceMaker::compute_inline(StageId stage) { add(sched::ComputeInline{position(stage)}); }

void TraceMaker::pack(StageId stage, sched::Layout layout) {
  add(sched::PackLayout{position(stage), std::move(layout)});
}

void TraceMaker::storage_align(StageId stage, LoopId loop, int64_t factor, int64_t offset) {
  add(sched::StorageAlign{position(stage), leaf(stage, loop), factor, offset});
}

StageId TraceMaker::cache_write(StageId stage, ir::MemoryScope scope) {
  const int at = position(stage);
  add(sched::CacheWrite{at, scope});
  const StageId made = insert_stage(at, stages_[stage].num_spatial, stages_[stage].num_reduce);
  Stage& copy = stages_[stage];
  copy.leaves = new_loops(copy.num_spatial);
  copy.num_reduce = 0;
  return made;
}

StageId TraceMaker::cache_read(StageId stage, ir::MemoryScope scope, const std::vector<StageId>& readers,
                               size_t dims) {
  const int at = position(stage);
  sched::CacheRead step{at, scope, {}};
  for (StageId reader : readers) step.readers.push_back(position(reader));
  add(std::move(step));
  return insert_stage(at + 1, dims, 0);
}

StageId TraceMaker::rfactor(StageId stage, LoopId loop, size_t factor_axis) {
  const int at = position(stage);
  add(sched::Rfactor{at, leaf(stage, loop), static_cast<int>(factor_axis)});
  const size_t spatial = stages_[stage].num_spatial;
  // Leaves that remain for the factored stage's reduction: all reduce leaves but the factored one.
  const size_t reduce_leaves = stages_[stage].leaves.size() - spatial - 1;
  const StageId made = insert_stage(at, spatial + 1, reduce_leaves);
  Stage& last = stages_[stage];
  last.leaves = new_loops(spatial + 1);
  last.num_reduce = 1;
  return made;
}

}  // namespace tensorsmith::space
