// fuse(stage, iterators)
//   Arguments: consecutive leaf positions, ascending; an empty list makes a new outermost loop of extent 1
//     (as Ansor does for stages without axes).
//   Rewrite: the leaves are replaced by one that enumerates them in row-major order. Stages that were
//     attached to the last leaf are attached to the fused loop. An init before the first leaf is placed
//     before the fused loop.
//   Checks: the leaves exist and are consecutive, have the same kind (all spatial or all reduce) and no
//     annotation; no stage is attached to a leaf other than the last; the reduction's init is not placed
//     before a leaf other than the first.
//
//     for i (4)            fuse i, j          for f = i.j.fused (12)
//       for j (3)             =>                C[f / 3, f % 3] = ...
//         C[i, j] = ...
#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"

namespace tensorsmith::sched::primitives {

Status apply(Schedule& schedule, const Fuse& step) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  Stage& stage = schedule.stages[s];
  const IteratorId fused = stage.iterators.next();
  FuseRelation relation;
  relation.child = fused;
  if (step.iterators.empty()) {
    stage.iterators.push_back({"unit", IterKind::kSpatial, Annotation::kNone});
    stage.leaves.insert(stage.leaves.begin(), fused);
    stage.relations.emplace_back(std::move(relation));
    return {};
  }
  std::string name;
  for (size_t i = 0; i < step.iterators.size(); ++i) {
    const int position = step.iterators[i];
    TS_ASSIGN_OR_RETURN(const IteratorId leaf, find_leaf(stage, position));
    if (i > 0 && position != step.iterators[i - 1] + 1)
      return illegal("the iterators to fuse are not consecutive; reorder them first");
    const Iterator& it = stage.iterators[leaf];
    if (it.annotation != Annotation::kNone)
      return illegal("loop '" + it.name + "' is annotated " + std::string(to_string(it.annotation)) +
                     "; fuse loops before they are annotated");
    const Iterator& first = i == 0 ? it : stage.iterators[relation.parents.front()];
    if (it.kind != first.kind)
      return illegal("loops '" + first.name + "' and '" + it.name +
                     "' cannot be fused: one is spatial, one reduces");
    if (i > 0 && stage.init_at == leaf)
      return illegal("the reduction's init is before loop '" + it.name +
                     "', in the middle of the fused loops");
    if (i + 1 < step.iterators.size()) {
      for (const Stage& other : schedule.stages) {
        if (other.is_attached_at(s, leaf))
          return illegal("stage '" + other.op->name + "' is attached to loop '" + it.name +
                         "', in the middle of the fused loops");
      }
    }
    relation.parents.push_back(leaf);
    name += it.name;
    name += '.';
  }
  name += "fused";
  const IteratorId first = relation.parents.front();
  const IteratorId last = relation.parents.back();
  if (stage.init_at == first) stage.init_at = fused;
  for (Stage& other : schedule.stages) {
    if (other.is_attached_at(s, last)) other.attach_iterator = fused;
  }
  stage.iterators.push_back({std::move(name), stage.iterators[first].kind, Annotation::kNone});
  const auto begin = stage.leaves.begin() + step.iterators.front();
  *begin = fused;
  stage.leaves.erase(begin + 1, begin + step.iterators.back() - step.iterators.front() + 1);
  stage.relations.emplace_back(std::move(relation));
  return {};
}

}  // namespace tensorsmith::sched::primitives
