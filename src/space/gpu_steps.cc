#include "space/gpu_steps.h"

namespace tensorsmith::space {

LoopId fuse_or_unit(TraceMaker& maker, StageId stage, const std::vector<LoopId>& loops) {
  return loops.empty() ? maker.unit_loop(stage) : maker.fuse(stage, loops);
}

StageId move_to(TraceMaker& maker, StageId stage, ir::MemoryScope scope) {
  const StageId made = maker.cache_write(stage, scope);
  maker.compute_inline(stage);
  return made;
}

StageId compute_locally(TraceMaker& maker, StageId output, StageId anchor) {
  return anchor == output ? maker.cache_write(output, ir::MemoryScope::kLocal)
                          : move_to(maker, anchor, ir::MemoryScope::kLocal);
}

void append_grouped(TraceMaker& maker, StageId stage, LoopId outer, LoopId inner, int64_t group,
                    std::vector<LoopId>& blocks) {
  if (group <= 1) {
    blocks.insert(blocks.end(), {outer, inner});
    return;
  }
  const auto made = maker.split(stage, outer, {group}, kPredicate);
  blocks.insert(blocks.end(), {made[0], inner, made[1]});
}

void share_among_warps(TraceMaker& maker, StageId stage, int64_t warps, int64_t vector) {
  const auto& leaves = maker.leaves(stage);
  const std::vector<LoopId> spatial(leaves.begin(), leaves.begin() + maker.num_spatial(stage));
  const LoopId all = fuse_or_unit(maker, stage, spatial);
  std::vector<int64_t> lengths = {warps, 32};
  if (vector > 1) lengths.push_back(vector);
  const auto made = maker.split(stage, all, lengths, kPredicate);
  maker.annotate(stage, made[1], sched::Annotation::kThreadY);
  maker.annotate(stage, made[2], sched::Annotation::kThreadX);
  if (vector > 1) maker.annotate(stage, made[3], sched::Annotation::kVectorize);
}

void share_among_threads(TraceMaker& maker, StageId stage, int64_t threads, int64_t vector) {
  const auto& leaves = maker.leaves(stage);
  const std::ptrdiff_t rank = maker.num_spatial(stage);
  const std::vector<LoopId> spatial(leaves.begin(), leaves.begin() + rank);
  const LoopId all = fuse_or_unit(maker, stage, spatial);
  const std::vector<int64_t> lengths = vector > 1 ? std::vector{threads, vector} : std::vector{threads};
  const auto made = maker.split(stage, all, lengths, sched::TailPolicy::kPredicate);
  maker.annotate(stage, made[1], sched::Annotation::kThreadX);
  if (vector > 1) maker.annotate(stage, made[2], sched::Annotation::kVectorize);
}

}  // namespace tensorsmith::space
