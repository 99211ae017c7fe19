// The loop nest of one schedule: stages become loops from the outside in, with what is known about the
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

// Where a tensor of the workload is stored.
struct StoragePlan {
  ir::Buffer buffer;
  sched::StageId stage;
  // Physical order; null: the logical dimensions.
  const sched::Layout* layout = nullptr;
  // Only the region of the attached stage is stored, from its first index.
  bool shrunk = false;
  bool allocated = false;  // by the program; otherwise it is a parameter
};
using StorageMap = std::unordered_map<const ir::BufferNode*, StoragePlan>;

class NestBuilder {
 public:
  NestBuilder(const sched::Schedule& schedule, const sched::Bounds& bounds, const StorageMap& storage);

  // The nest of a stage at root with everything that is attached to it; null if nothing is computed.
  ir::Stmt root_stage(sched::StageId s);

 private:
  // Each peeled tail doubles the code below; beyond this, guards.
  static constexpr int kMaxPeels = 6;

  using StageId = sched::StageId;
  using IteratorId = sched::IteratorId;

  // value(children[child ..] of the split) < rest must hold, given the values of the children before. rest
  // may depend on loops outside.
  struct Constraint {
    const sched::SplitRelation* split = nullptr;
    size_t child = 0;
    Index rest;
    // The whole constraint: value(iterator) < limit.
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
  // What is still to be decided below some loop of a stage.
  struct State {
    bool init = false;
    bool outermost = true;  // no loop of the stage was written yet
    int peels = 0;          // how often the nest was doubled on the way here
    std::vector<Constraint> constraints;
    std::vector<Guard> guards;
    IdVector<IteratorId, int64_t> limits;  // values below are needed
  };
  // Facts about a stage that no place changes.
  struct StageInfo {
    // How many of the stage's loops, from the outermost on, decide its value.
    IdVector<IteratorId, size_t> depth;
    IdVector<IteratorId, const sched::Relation*> made_into;  // what consumed it; null: a leaf
    std::vector<std::vector<StageId>> attached;              // by leaf position
    size_t init_position = 0;                                // reductions: before the leaf at this position
    // Inside the leaves before this position something attached is shared by a block's threads, all of which must come
    // to it: no guard stands around it.
    size_t shared_position = 0;
    bool ready = false;
  };

  StageInfo& info(StageId s);
  ir::Stmt stage(StageId s, int peels);
  ir::Stmt whole_or_guarded(StageId s, State state);
  ir::Stmt nest(StageId s, State state, size_t position);
  // extent: at most the constant; less where fewer iterations are needed.
  ir::Stmt loop(StageId s, State state, size_t position, int64_t extent, const Index& fewer);
  ir::Stmt open_leaf(StageId s, State state, size_t position);
  ir::Stmt thread_loop(StageId s, State state, size_t position);
  ir::Stmt innermost(StageId s, bool init);
  // Decides constraints whose current child has a value. Returns true if result is the whole nest.
  bool resolve_constraints(StageId s, State& state, size_t position, ir::Stmt& result);
  // The condition of the guards that can be decided here; removes them. False: nothing is computed.
  bool take_guards(StageId s, State& state, size_t position, ir::Expr& condition,
                   std::vector<IndexArena::Saved>& restricted);
  void to_guard(State& state, size_t constraint);
  void descend(StageId s, Constraint& c) const;
  // Whether the tail is better cut at the next child, so that the loops of this one need not be doubled.
  bool defer(StageId s, const Constraint& c) const;
  State init_state(StageId s, const State& state);
  // Overreach (overreach.cc): an attached stage has room for its whole region, and computing the part of it
  // beyond the tensor is harmless where everything read for it is there. It is tried, and each read is
  // checked when it is written; then neither guards nor cut loops are needed.
  struct Overreach {
    std::vector<char> axes;     // by spatial axis: may exceed the tensor
    std::vector<char> failed;   // those for which a read was not known to be there
    std::vector<char> partial;  // by root axis: the region is not computed to its end
  };
  std::vector<char> overreach_candidates(StageId s) const;
  bool contains_shared(StageId s) const;  // it, or what is attached to its loops
  // The body of a stage that fills its region (sched::fills_region), with its zeros.
  ir::Expr filled(StageId s, const ir::Expr& body) const;
  void check_overreach(const ir::Load& load, const StoragePlan& plan, const std::vector<Index>& logical);
  // The number of values to compute so that the vectorized loop of the axis, if there is one, runs in full.
  int64_t round_to_lanes(StageId s, size_t axis, int64_t needed) const;
  int64_t axis_extent(StageId s, size_t root) const;
  State initial_state(StageId s, int peels);
  int64_t inner_product(StageId s, const sched::SplitRelation& split, size_t child) const;

  Index value_of(StageId s, IteratorId iterator);
  bool shifts(StageId s, const sched::SplitRelation& split) const {
    return sched::shifts_last_tile(schedule_.stages[s], split, bounds_.stages[s].extents,
                                   bounds_.stages[s].root_may_leave);
  }
  // The axis is one of those that overreach, until a read was not known to be there.
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
  IdVector<StageId, std::vector<Index>> root_min_;  // by root axis, while the stage is being written
  IdVector<StageId, Overreach> overreach_;
  StageId writing_;  // whose body is being written
  Rewriter::LoadWriter load_writer_;
};

}  // namespace tensorsmith::lower
