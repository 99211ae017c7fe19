// Builds the loop nest of a schedule from the outside in, and keeps track of the facts about the
// indices at each place.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "lower/index.h"
#include "lower/rewriter.h"
#include "sched/relations.h"
#include "sched/schedule.h"

namespace tensorsmith::lower {

// Storage of a tensor of the workload.
struct StoragePlan {
  ir::Buffer buffer;
  sched::StageId stage;
  // Physical layout; null: the logical dimensions.
  const sched::Layout* layout = nullptr;
  // Only the region of the attached stage is stored, beginning with its first index.
  bool shrunk = false;
  bool allocated = false;  // by the program; otherwise it is a parameter
};
using StorageMap = std::unordered_map<const ir::BufferNode*, StoragePlan>;

class NestBuilder {
 public:
  NestBuilder(const sched::Schedule& schedule, const sched::Bounds& bounds, const StorageMap& storage);

  // Returns the nest of a root stage with all stages attached to it; null if nothing is computed.
  ir::Stmt root_stage(sched::StageId s);

 private:
  // Each peeled tail doubles the code below it. Beyond this many, tails are guarded.
  static constexpr int kMaxPeels = 6;

  using StageId = sched::StageId;
  using IteratorId = sched::IteratorId;

  // value(children[child ..] of the split) < rest must hold, given the values of the preceding
  // children. `rest` may depend on outer loops.
  struct Constraint {
    const sched::SplitRelation* split = nullptr;
    size_t child = 0;
    Index rest;
    // The constraint it stems from: value(iterator) < limit.
    IteratorId iterator;
    int64_t limit = 0;
  };
  // lower <= base + value(iterator) < upper
  struct Guard {
    IteratorId iterator;
    Index base;
    int64_t lower = 0;
    int64_t upper = 0;
  };
  // Decisions that are still open below some loop of a stage.
  struct State {
    bool init = false;
    bool outermost = true;  // no loop of the stage has been emitted yet
    int peels = 0;          // how often the nest was doubled on the way to this place
    std::vector<Constraint> constraints;
    std::vector<Guard> guards;
    IdVector<IteratorId, int64_t> limits;  // only values below these are needed
  };
  // Facts about a stage that are the same at all places.
  struct StageInfo {
    // Number of the stage's loops, counted from the outermost, that determine the iterator's value.
    IdVector<IteratorId, size_t> depth;
    IdVector<IteratorId, const sched::Relation*> made_into;  // the relation that consumed the iterator; null:
                                                             // it is a leaf
    std::vector<std::vector<StageId>> attached;              // by leaf position
    size_t init_position = 0;  // for reductions: before the leaf at this position
    // Inside the leaves before this position, a stage is attached that a block's threads share. All
    // threads must reach it, so no guard may surround it.
    size_t shared_position = 0;
    bool ready = false;
  };

  StageInfo& info(StageId s);
  ir::Stmt stage(StageId s, int peels);
  ir::Stmt whole_or_guarded(StageId s, State state);
  ir::Stmt nest(StageId s, State state, size_t position);
  // `extent` is a constant upper bound; `fewer` is the number of iterations if it may be smaller.
  ir::Stmt loop(StageId s, State state, size_t position, int64_t extent, const Index& fewer);
  ir::Stmt open_leaf(StageId s, State state, size_t position);
  ir::Stmt thread_loop(StageId s, State state, size_t position);
  ir::Stmt innermost(StageId s, bool init);
  // Decides constraints whose current child has a value. Returns true if `result` is the whole
  // nest.
  bool resolve_constraints(StageId s, State& state, size_t position, ir::Stmt& result);
  // Removes the guards that can be decided here and sets `condition` to their conjunction. Returns
  // false if nothing is computed.
  bool take_guards(StageId s, State& state, size_t position, ir::Expr& condition,
                   std::vector<IndexArena::Saved>& restricted);
  void to_guard(State& state, size_t constraint);
  void descend(StageId s, Constraint& c) const;
  // Returns whether it is better to cut the tail at the next child, so that this child's loop need
  // not be doubled.
  bool defer(StageId s, const Constraint& c) const;
  State init_state(StageId s, const State& state);
  // Overreach (overreach.cc): an attached stage has storage for its whole region, and computing the
  // part beyond the tensor is harmless if everything that it reads there exists. This is tried
  // first, and each read is checked when it is emitted. If it succeeds, neither guards nor cut
  // loops are needed.
  struct Overreach {
    std::vector<char> axes;     // by spatial axis: may exceed the tensor
    std::vector<char> failed;   // axes for which some read is not known to exist
    std::vector<char> partial;  // by root axis: the region is not computed to its end
  };
  std::vector<char> overreach_candidates(StageId s) const;
  bool contains_shared(StageId s) const;  // the stage, or a stage attached to its loops
  // Returns the body of a stage that fills its region (sched::fills_region), which is zero outside
  // the tensor.
  ir::Expr filled(StageId s, const ir::Expr& body) const;
  void check_overreach(const ir::Load& load, const StoragePlan& plan, const std::vector<Index>& logical);
  // Rounds the number of values to compute up, so that the axis' vectorized loop, if there is one,
  // runs in full.
  int64_t round_to_lanes(StageId s, size_t axis, int64_t needed) const;
  int64_t axis_extent(StageId s, size_t root) const;
  State initial_state(StageId s, int peels);
  int64_t inner_product(StageId s, const sched::SplitRelation& split, size_t child) const;

  Index value_of(StageId s, IteratorId iterator);
  bool shifts(StageId s, const sched::SplitRelation& split) const {
    return sched::shifts_last_tile(schedule_.stages[s], split, bounds_.stages[s].extents,
                                   bounds_.stages[s].root_may_leave);
  }
  // Returns whether the axis may still overreach: no read on it has failed so far.
  bool overruns(StageId s, const sched::SplitRelation& split) const {
    const size_t axis = split.parent.place();
    return axis < overreach_[s].axes.size() && overreach_[s].axes[axis] != 0 &&
           sched::may_overrun(schedule_.stages[s], split, bounds_.stages[s].extents,
                              bounds_.stages[s].root_may_leave);
  }
  Index leaf_value(StageId s, IteratorId iterator) { return arena_.resolve(leaf_values_[s][iterator]); }
  Index region_min(StageId s, size_t root);
  std::vector<ir::Expr> physical(const StoragePlan& plan, std::vector<Index> logical);
  ir::Expr write_load(const ir::Load& load, std::vector<Index> indices);
  ir::Stmt store(const ir::Buffer& logical, const std::vector<Index>& point, ir::Expr value);

  const sched::Schedule& schedule_;
  const sched::Bounds& bounds_;
  const StorageMap& storage_;
  IndexArena arena_;
  IdVector<StageId, StageInfo> infos_;
  IdVector<StageId, IdVector<IteratorId, Index>> leaf_values_;
  IdVector<StageId, std::vector<Index>> root_min_;  // by root axis, while the stage is being emitted
  IdVector<StageId, Overreach> overreach_;
  StageId writing_;  // stage whose body is being emitted
  Rewriter::LoadWriter load_writer_;
};

}  // namespace tensorsmith::lower
