// The second half of a replay: what MetaSchedule does to loops, as steps of a schedule.
//
// MetaSchedule changes definitions and loops in any order. Our cache_write, compute_inline and
// cache_read come before the loops of a stage are changed, so a replay applies those at once, keeps
// the changes of loops, and applies these afterwards in their order.
#pragma once

#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "record/metaschedule/block_tree.h"
#include "sched/step.h"

namespace tensorsmith::record {

// Loops that a block has anew, one for each axis: spatial, then reduce.
struct NewLoops {
  BlockTreeId block;
  std::vector<BlockTreeId> loops;
  std::vector<size_t> axes = {};  // the axis of each loop, where the loops are in another order
};
struct SplitLoop {
  BlockTreeId loop;
  std::vector<BlockTreeId> parts;
  std::vector<std::optional<int64_t>> factors;  // extents of the parts; none: what remains
};
struct FuseLoops {
  std::vector<BlockTreeId> loops;
  BlockTreeId fused;
};
struct ReorderLoops {
  std::vector<BlockTreeId> loops;
};
struct AnnotateLoop {
  BlockTreeId loop;
  sched::Annotation annotation = sched::Annotation::kNone;
};
// Sets auto_unroll_max_step for the loop and everything inside it.
struct UnrollInside {
  BlockTreeId loop;
  int64_t max_step = 0;
};
// Computes the block inside the loop, with new loops, for its readers there.
struct AttachProducer {
  BlockTreeId block, loop;
  std::vector<BlockTreeId> loops;
  std::vector<size_t> axes = {};  // as in NewLoops
};
// Computes the block inside the loop of the block that it reads.
struct AttachConsumer {
  BlockTreeId block, loop;
  std::vector<BlockTreeId> loops;
};
struct PlaceInit {
  BlockTreeId block, loop;
};
// Aligns the stride of a dimension of the block's tensor; its loop must be whole.
struct AlignStorage {
  BlockTreeId block;
  size_t dimension = 0;
  int64_t factor = 1, offset = 0;
};
using LoopChange = std::variant<NewLoops, SplitLoop, FuseLoops, ReorderLoops, AnnotateLoop, UnrollInside,
                                AttachProducer, AttachConsumer, PlaceInit, AlignStorage>;

// Applies changes to the schedule of a builder, with the output of each block as the name of its
// stage. Errors: those of the steps' checks, and kUnsupported for what our schedules cannot express.
class LoopChanger {
 public:
  using Outputs = std::unordered_map<uint32_t, ir::Buffer>;  // by place of the block's id

  LoopChanger(sched::ScheduleBuilder& builder, const Outputs& outputs)
      : builder_(builder), outputs_(outputs) {}
  Status apply(const LoopChange& change);

  // Where a loop of MetaSchedule is. Without an iterator it runs once and our schedule has no loop.
  struct Home {
    BlockTreeId block;
    sched::IteratorId iterator;
  };
  const Home& home_of(BlockTreeId loop) const { return homes_.at(loop.place()); }

 private:
  struct Place {
    int stage = 0, position = 0;
  };

  Status make(const NewLoops& change);
  Status make(const SplitLoop& change);
  Status make(const FuseLoops& change);
  Status make(const ReorderLoops& change);
  Status make(const AnnotateLoop& change);
  Status make(const UnrollInside& change);
  Status make(const AttachProducer& change);
  Status make(const AttachConsumer& change);
  Status make(const PlaceInit& change);
  Status make(const AlignStorage& change);

  sched::StageId stage_of(BlockTreeId block) const;
  const sched::Stage& stage(BlockTreeId block) const { return builder_.schedule().stages[stage_of(block)]; }
  bool runs_once(BlockTreeId loop) const { return !homes_.at(loop.place()).iterator.valid(); }
  Result<Place> place_of(BlockTreeId loop) const;  // the loop must have an iterator
  // Returns the places of those loops that have an iterator; they must be of one stage.
  Result<std::vector<Place>> places_of(const std::vector<BlockTreeId>& loops) const;
  Status split_at(Place place, std::vector<int64_t> lengths, bool inner_to_outer);
  Status take_remaining_loops(const AttachConsumer& change, size_t first);

  sched::ScheduleBuilder& builder_;
  const Outputs& outputs_;
  std::unordered_map<uint32_t, Home> homes_;  // by place of the loop's id
};

}  // namespace tensorsmith::record
