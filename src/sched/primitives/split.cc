// Splits.
//
// split(stage, iterator, lengths, inner_to_outer, tail)
//   Arguments: a leaf and the extents of the inner loops (outer to inner), or with inner_to_outer = false
//     those of the outer loops; any factors > 0, which need not divide the extent.
//   Rewrite: the leaf is replaced by lengths.size() + 1 leaves, named "NAME.0", "NAME.1", ... Stages that were
//     attached to it are attached to the innermost; a reduction's init before it is placed before the outermost.
//   Checks: the leaf exists and is not annotated; lengths > 0 and their product below 2^40.
//
//     for i (10)          split i, [4]        for i.0 (3)
//       C = ...              =>                 for i.1 (4)
//                                                 if (i.0 * 4 + i.1 < 10) C = ...
//
// follow_split(stage, iterator, source_step, n_split)
//   A split with the lengths of an earlier one: its first n_split - 1 lengths, then the product of the others.
//
//     after split #0 with lengths [2, 4, 8]:   follow_split source_step=0 n_split=2   =>   lengths [2, 32]
//
// follow_fused_split(stage, iterator, source_steps, level, factor)
//   Arguments: a leaf, earlier splits, a level of theirs, and whether their product is the inner extent.
//   Rewrite: a split into two loops. The product of lengths[level] over the source steps is the inner extent
//     if `factor` is true, else the number of outer iterations.
//   Checks: the source steps are splits before this one and have that many lengths.
#include <functional>
#include <numeric>
#include <utility>

#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"

namespace tensorsmith::sched::primitives {

Status apply(Schedule& schedule, const Split& step) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  Stage& stage = schedule.stages[s];
  TS_ASSIGN_OR_RETURN(const IteratorId leaf, find_leaf(stage, step.iterator));
  if (step.lengths.empty()) return invalid("a split needs at least one length");
  if (step.lengths.size() > 15) return invalid("a split has at most 15 lengths");
  int64_t product = 1;
  for (int64_t length : step.lengths) {
    constexpr int64_t kLimit = int64_t{1} << 40;
    if (length <= 0) return invalid("split length " + std::to_string(length) + " is not positive");
    if (length > kLimit / product) return invalid("the split's lengths exceed 2^40 together");
    product *= length;
  }
  const Iterator& old = stage.iterators[leaf];
  if (old.annotation != Annotation::kNone)
    return illegal("loop '" + old.name + "' is annotated " + std::string(to_string(old.annotation)) +
                   "; split it before annotate");

  SplitRelation relation;
  relation.parent = leaf;
  relation.lengths = step.lengths;
  relation.tail = step.tail;
  relation.outer_lengths = !step.inner_to_outer;
  const size_t n = step.lengths.size() + 1;
  relation.children.reserve(n);
  const std::string name = old.name;
  const IterKind kind = old.kind;
  for (size_t i = 0; i < n; ++i) {
    std::string child = name;
    child += '.';
    child += std::to_string(i);
    relation.children.push_back(stage.iterators.push_back({std::move(child), kind, Annotation::kNone}));
  }
  if (stage.init_at == leaf) stage.init_at = relation.children.front();
  for (Stage& other : schedule.stages) {
    if (other.is_attached_at(s, leaf)) other.attach_iterator = relation.children.back();
  }
  const auto place = stage.leaves.begin() + step.iterator;
  *place = relation.children.front();
  stage.leaves.insert(place + 1, relation.children.begin() + 1, relation.children.end());
  stage.relations.emplace_back(std::move(relation));
  return {};
}

namespace {

Result<const Split*> source_split(std::span<const Step> earlier, int source) {
  if (source < 0 || std::cmp_greater_equal(source, earlier.size()))
    return invalid("source step " + std::to_string(source) + " is not an earlier step");
  const auto* split = std::get_if<Split>(&earlier.begin()[source]);
  if (split == nullptr) return invalid("source step " + std::to_string(source) + " is not a split");
  return split;
}

}  // namespace

Status apply(Schedule& schedule, const FollowSplit& step, std::span<const Step> earlier) {
  TS_ASSIGN_OR_RETURN(const Split* source, source_split(earlier, step.source_step));
  const size_t available = source->lengths.size();
  if (step.n_split < 1 || std::cmp_greater(step.n_split, available))
    return invalid("n_split " + std::to_string(step.n_split) + " is not between 1 and the " +
                   std::to_string(available) + " lengths of source step " + std::to_string(step.source_step));
  const auto merged = source->lengths.begin() + step.n_split - 1;  // begin of the merged lengths
  Split split;
  split.stage = step.stage;
  split.iterator = step.iterator;
  split.tail = source->tail;
  split.lengths.assign(source->lengths.begin(), merged);
  split.lengths.push_back(
      std::accumulate(merged, source->lengths.end(), int64_t{1}, std::multiplies<int64_t>()));
  return apply(schedule, split);
}

Status apply(Schedule& schedule, const FollowFusedSplit& step, std::span<const Step> earlier) {
  if (step.source_steps.empty()) return invalid("follow_fused_split needs a source step");
  Split split;
  split.stage = step.stage;
  split.iterator = step.iterator;
  split.inner_to_outer = step.factor;
  int64_t product = 1;
  for (int source_step : step.source_steps) {
    TS_ASSIGN_OR_RETURN(const Split* source, source_split(earlier, source_step));
    if (step.level < 0 || std::cmp_greater_equal(step.level, source->lengths.size()))
      return invalid("level " + std::to_string(step.level) + " is not one of the " +
                     std::to_string(source->lengths.size()) + " lengths of source step " +
                     std::to_string(source_step));
    const int64_t length = source->lengths.begin()[step.level];
    if (product > (int64_t{1} << 40) / length)
      return invalid("the product of the followed lengths exceeds 2^40");
    product *= length;
  }
  split.lengths = {product};
  return apply(schedule, split);
}

}  // namespace tensorsmith::sched::primitives
