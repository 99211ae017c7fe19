#include "record/metaschedule/loop_changes.h"

#include <algorithm>
#include <numeric>

namespace tensorsmith::record {

namespace {

using sched::IteratorId;
using sched::StageId;

Error not_expressible(std::string reason) { return Error{ErrorCode::kUnsupported, "", std::move(reason)}; }

// Returns the axis that the leaf is made of; of several, the innermost.
size_t axis_of(const sched::Stage& stage, IteratorId leaf) {
  IteratorId at = leaf;
  for (auto it = stage.relations.rbegin(); it != stage.relations.rend(); ++it) {
    if (const auto* split = std::get_if<sched::SplitRelation>(&*it)) {
      if (std::find(split->children.begin(), split->children.end(), at) != split->children.end())
        at = split->parent;
    } else if (const auto& fuse = std::get<sched::FuseRelation>(*it);
               fuse.child == at && !fuse.parents.empty()) {
      at = fuse.parents.back();
    }
  }
  return at.place();
}

}  // namespace

Status LoopChanger::apply(const LoopChange& change) {
  return std::visit([&](const auto& c) { return make(c); }, change);
}

StageId LoopChanger::stage_of(BlockTreeId block) const {
  return builder_.schedule().producer_of(outputs_.at(block.place()).get());
}

Result<LoopChanger::Place> LoopChanger::place_of(BlockTreeId loop) const {
  const Home& home = homes_.at(loop.place());
  const auto position = stage(home.block).leaf_position(home.iterator);
  TS_CHECK(position.has_value(), "a loop of MetaSchedule has no place");
  return Place{static_cast<int>(stage_of(home.block).place()), static_cast<int>(*position)};
}

Result<std::vector<LoopChanger::Place>> LoopChanger::places_of(const std::vector<BlockTreeId>& loops) const {
  std::vector<Place> places;
  for (const BlockTreeId loop : loops) {
    if (runs_once(loop)) continue;
    TS_ASSIGN_OR_RETURN(const Place place, place_of(loop));
    if (!places.empty() && places.front().stage != place.stage)
      return not_expressible("fusing or reordering loops of two blocks is not supported");
    places.push_back(place);
  }
  return places;
}

Status LoopChanger::make(const NewLoops& change) {
  for (size_t i = 0; i < change.loops.size(); ++i)
    homes_[change.loops[i].place()] = {change.block, IteratorId(change.axes.empty() ? i : change.axes[i])};
  if (std::is_sorted(change.axes.begin(), change.axes.end())) return {};
  return builder_.apply(sched::Reorder{static_cast<int>(stage_of(change.block).place()),
                                       {change.axes.begin(), change.axes.end()}});
}

Status LoopChanger::split_at(Place place, std::vector<int64_t> lengths, bool inner_to_outer) {
  if (lengths.empty()) return {};
  sched::Split step;
  step.stage = place.stage;
  step.iterator = place.position;
  step.lengths = std::move(lengths);
  step.inner_to_outer = inner_to_outer;
  return builder_.apply(step);
}

// The part of unknown extent, or else the outermost, gets what remains. Parts inside it are split
// off by their extents, then those outside.
Status LoopChanger::make(const SplitLoop& change) {
  const auto open = std::find(change.factors.begin(), change.factors.end(), std::nullopt);
  const size_t rest = open == change.factors.end() ? 0 : open - change.factors.begin();
  std::vector<int64_t> outer, inner;
  for (size_t i = 0; i < change.factors.size(); ++i) {
    if (i == rest) continue;
    if (!change.factors[i]) return not_expressible("a split leaves the extents of two loops open");
    (i < rest ? outer : inner).push_back(*change.factors[i]);
  }
  const BlockTreeId block = homes_.at(change.loop.place()).block;
  if (runs_once(change.loop)) {
    const auto one = [](int64_t f) { return f == 1; };
    if (!std::all_of(outer.begin(), outer.end(), one) || !std::all_of(inner.begin(), inner.end(), one))
      return not_expressible("a loop that runs once is split into loops that run more often");
    for (const BlockTreeId part : change.parts) homes_[part.place()] = {block, {}};
    return {};
  }
  TS_ASSIGN_OR_RETURN(const Place place, place_of(change.loop));
  TS_RETURN_IF_ERROR(split_at(place, inner, true));
  TS_RETURN_IF_ERROR(split_at(place, outer, false));
  const auto& leaves = stage(block).leaves;
  for (size_t i = 0; i < change.parts.size(); ++i)
    homes_[change.parts[i].place()] = {block, leaves[static_cast<size_t>(place.position) + i]};
  return {};
}

Status LoopChanger::make(const FuseLoops& change) {
  TS_ASSIGN_OR_RETURN(const std::vector<Place> places, places_of(change.loops));
  Home home = homes_.at(change.loops.front().place());
  for (const BlockTreeId loop : change.loops) {
    if (!runs_once(loop)) home = homes_.at(loop.place());
  }
  if (places.size() > 1) {
    sched::Fuse step{places.front().stage, {}};
    for (const Place& place : places) step.iterators.push_back(place.position);
    TS_RETURN_IF_ERROR(builder_.apply(step));
    home.iterator = stage(home.block).leaves[static_cast<size_t>(places.front().position)];
  }
  homes_[change.fused.place()] = home;
  return {};
}

Status LoopChanger::make(const ReorderLoops& change) {
  TS_ASSIGN_OR_RETURN(const std::vector<Place> places, places_of(change.loops));
  if (places.size() < 2) return {};
  std::vector<int> slots;
  for (const Place& place : places) slots.push_back(place.position);
  std::sort(slots.begin(), slots.end());
  sched::Reorder step;
  step.stage = places.front().stage;
  step.order.resize(builder_.schedule().stages[StageId(static_cast<size_t>(step.stage))].leaves.size());
  std::iota(step.order.begin(), step.order.end(), 0);
  for (size_t i = 0; i < slots.size(); ++i) step.order[static_cast<size_t>(slots[i])] = places[i].position;
  return std::is_sorted(step.order.begin(), step.order.end()) ? Status() : builder_.apply(step);
}

Status LoopChanger::make(const AnnotateLoop& change) {
  if (runs_once(change.loop)) return {};
  TS_ASSIGN_OR_RETURN(const Place place, place_of(change.loop));
  return builder_.apply(sched::Annotate{place.stage, place.position, change.annotation});
}

// The pragma counts for all that is inside the loop, ours for the loops of one stage.
Status LoopChanger::make(const UnrollInside& change) {
  const Home& home = homes_.at(change.loop.place());
  const auto& stages = builder_.schedule().stages;
  const StageId owner = stage_of(home.block);
  const size_t first = stages[owner].leaf_position(home.iterator).value_or(0);
  std::vector<StageId> inside = {owner};
  // Producers precede their readers, so the stage that one is attached to has been seen before.
  for (size_t place = owner.place(); place-- > 0;) {
    const sched::Stage& other = stages[StageId(place)];
    if (other.attach != sched::AttachKind::kAt) continue;
    const bool nested = std::find(inside.begin(), inside.end(), other.attach_stage) != inside.end();
    if (!nested ||
        (other.attach_stage == owner && stages[owner].leaf_position(other.attach_iterator) < first))
      continue;
    inside.emplace_back(place);
  }
  for (const StageId s : inside)
    TS_RETURN_IF_ERROR(builder_.apply(sched::Unroll{static_cast<int>(s.place()), change.max_step}));
  return {};
}

Status LoopChanger::make(const AttachProducer& change) {
  if (runs_once(change.loop))
    return not_expressible("a block is computed at a loop that runs once and that our schedule leaves out");
  TS_ASSIGN_OR_RETURN(const Place target, place_of(change.loop));
  const auto stage = static_cast<int>(stage_of(change.block).place());
  TS_RETURN_IF_ERROR(builder_.apply(sched::ComputeAt{stage, target.stage, target.position}));
  return make(NewLoops{change.block, change.loops, change.axes});
}

// The step moves the producer's outer loops to the consumer; the producer keeps loops that run once.
Status LoopChanger::make(const AttachConsumer& change) {
  if (runs_once(change.loop))
    return not_expressible("a block is computed at a loop that runs once and that our schedule leaves out");
  TS_ASSIGN_OR_RETURN(const Place target, place_of(change.loop));
  const BlockTreeId producer = homes_.at(change.loop.place()).block;
  const std::vector<IteratorId> outer(stage(producer).leaves.begin(),
                                      stage(producer).leaves.begin() + target.position + 1);
  const auto consumer = static_cast<int>(stage_of(change.block).place());
  TS_RETURN_IF_ERROR(builder_.apply(sched::ReverseComputeAt{consumer, target.stage, target.position}));
  const std::vector<IteratorId>& leaves = stage(change.block).leaves;
  for (auto& [loop, home] : homes_) {
    if (home.block != producer || !home.iterator.valid()) continue;
    const auto it = std::find(outer.begin(), outer.end(), home.iterator);
    if (it != outer.end()) home = {change.block, leaves[static_cast<size_t>(it - outer.begin())]};
  }
  return take_remaining_loops(change, outer.size());
}

// Finds the consumer's own loops: its leaves from `first` on, by axis. Those of one axis are fused.
Status LoopChanger::take_remaining_loops(const AttachConsumer& change, size_t first) {
  for (size_t axis = 0; axis < change.loops.size(); ++axis) {
    const sched::Stage& consumer = stage(change.block);
    std::vector<int> positions;
    for (size_t p = first; p < consumer.leaves.size(); ++p) {
      if (axis_of(consumer, consumer.leaves[p]) == axis) positions.push_back(static_cast<int>(p));
    }
    Home& home = homes_[change.loops[axis].place()];
    home = {change.block, {}};
    if (positions.size() > 1)
      TS_RETURN_IF_ERROR(
          builder_.apply(sched::Fuse{static_cast<int>(stage_of(change.block).place()), positions}));
    if (!positions.empty()) home.iterator = stage(change.block).leaves[static_cast<size_t>(positions[0])];
  }
  return {};
}

Status LoopChanger::make(const PlaceInit& change) {
  if (runs_once(change.loop)) return {};
  if (homes_.at(change.loop.place()).block != change.block)
    return not_expressible("a reduction is decomposed at a loop of another block");
  TS_ASSIGN_OR_RETURN(const Place place, place_of(change.loop));
  return builder_.apply(sched::DecomposeReduction{place.stage, place.position});
}

Status LoopChanger::make(const AlignStorage& change) {
  const auto position = stage(change.block).leaf_position(IteratorId(change.dimension));
  if (!position) return not_expressible("a dimension is aligned whose loop was changed before");
  return builder_.apply(sched::StorageAlign{static_cast<int>(stage_of(change.block).place()),
                                            static_cast<int>(*position), change.factor, change.offset});
}

}  // namespace tensorsmith::record
