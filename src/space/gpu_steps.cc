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

void share_among_threads(TraceMaker& maker, StageId stage, int64_t threads, int64_t vector) {
  const auto& leaves = maker.leaves(stage);
  const auto rank = static_cast<std::ptrdiff_t>(maker.num_spatial(stage));
  const std::vector<LoopId> spatial(leaves.begin(), leaves.begin() + rank);
  const LoopId all = fuse_or_unit(maker, stage, spatial);
  const std::vector<int64_t> lengths = vector > 1 ? std::vector{threads, vector} : std::vector{threads};
  const auto made = maker.split(stage, all, lengths, sched::TailPolicy::kPredicate);
  maker.annotate(stage, made[1], sched::Annotation::kThreadX);
  if (vector > 1) maker.annotate(stage, made[2], sched::Annotation::kVectorize);
}

}  // namespace tensorsmith::space
