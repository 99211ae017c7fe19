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
  num_spatial_.reserve(stages);
  num_reduce_.reserve(stages);
  order_.reserve(stages);
  for (size_t i = 0; i < workload.operations.size(); ++i) {
    const auto& op = *workload.operations[i];
    insert_stage(i, op.spatial.size(), op.reduce.size());
  }
}

TraceMaker::StageId TraceMaker::insert_stage(size_t at, size_t spatial, size_t reduce) {
  const auto handle = static_cast<StageId>(stages_.size());
  std::vector<LoopId> loops(spatial + reduce);
  for (auto& loop : loops) loop = next_loop_++;
  stages_.push_back(std::move(loops));
  num_spatial_.push_back(spatial);
  num_reduce_.push_back(reduce);
  order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(at), handle);
  return handle;
}

int TraceMaker::position(StageId stage) const {
  const auto it = std::find(order_.begin(), order_.end(), stage);
  TS_CHECK(it != order_.end(), "TraceMaker: unknown stage");
  return static_cast<int>(it - order_.begin());
}

int TraceMaker::leaf(StageId stage, LoopId loop) const {
  const auto& loops = leaves(stage);
  const auto it = std::find(loops.begin(), loops.end(), loop);
  TS_CHECK(it != loops.end(), "TraceMaker: loop is no leaf of the stage");
  return static_cast<int>(it - loops.begin());
}

std::vector<TraceMaker::LoopId> TraceMaker::split(StageId stage, LoopId loop, std::vector<int64_t> lengths,
                                                  sched::TailPolicy tail) {
  const int at = leaf(stage, loop);
  std::vector<LoopId> made(lengths.size() + 1);
  for (auto& m : made) m = next_loop_++;
  auto& loops = stages_[static_cast<size_t>(stage)];
  const auto where = loops.erase(loops.begin() + at);
  loops.insert(where, made.begin(), made.end());
  add(sched::Split{position(stage), at, std::move(lengths), true, tail});
  return made;
}

TraceMaker::LoopId TraceMaker::fuse(StageId stage, const std::vector<LoopId>& fused) {
  TS_CHECK(!fused.empty(), "TraceMaker: nothing to fuse");
  if (fused.size() == 1) return fused.front();
  sched::Fuse step{position(stage), {}};
  for (LoopId loop : fused) step.iterators.push_back(leaf(stage, loop));
  auto& loops = stages_[static_cast<size_t>(stage)];
  const auto first = loops.begin() + step.iterators.front();
  const LoopId made = next_loop_++;
  *first = made;
  loops.erase(first + 1, first + static_cast<std::ptrdiff_t>(fused.size()));
  add(std::move(step));
  return made;
}

void TraceMaker::reorder(StageId stage, const std::vector<LoopId>& order) {
  auto& loops = stages_[static_cast<size_t>(stage)];
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

TraceMaker::StageId TraceMaker::cache_write(StageId stage, ir::MemoryScope scope) {
  const int at = position(stage);
  add(sched::CacheWrite{at, scope});
  const auto index = static_cast<size_t>(stage);
  const StageId made = insert_stage(static_cast<size_t>(at), num_spatial_[index], num_reduce_[index]);
  auto& copy = stages_[index];
  copy.resize(num_spatial_[index]);
  for (auto& loop : copy) loop = next_loop_++;
  num_reduce_[index] = 0;
  return made;
}

TraceMaker::StageId TraceMaker::cache_read(StageId stage, ir::MemoryScope scope,
                                           const std::vector<StageId>& readers, size_t dims) {
  const int at = position(stage);
  sched::CacheRead step{at, scope, {}};
  for (StageId reader : readers) step.readers.push_back(position(reader));
  add(std::move(step));
  return insert_stage(static_cast<size_t>(at) + 1, dims, 0);
}

TraceMaker::StageId TraceMaker::rfactor(StageId stage, LoopId loop, size_t factor_axis) {
  const int at = position(stage);
  add(sched::Rfactor{at, leaf(stage, loop), static_cast<int>(factor_axis)});
  const auto index = static_cast<size_t>(stage);
  // Leaves that remain for the factored stage's reduction: all reduce leaves but the factored one.
  const size_t reduce_leaves = stages_[index].size() - num_spatial_[index] - 1;
  const StageId made = insert_stage(static_cast<size_t>(at), num_spatial_[index] + 1, reduce_leaves);
  auto& last = stages_[index];
  last.resize(num_spatial_[index] + 1);
  for (auto& l : last) l = next_loop_++;
  num_reduce_[index] = 1;
  return made;
}

}  // namespace tensorsmith::space
