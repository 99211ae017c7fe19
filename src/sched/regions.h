// Bound inference without converting its results to expressions, for passes that run for every
// candidate of a search. infer_bounds (schedule.h) defines the results; here, the first index of
// each region is a Sym over the loops, and the next run reuses all memory.
#pragma once

#include <vector>

#include "sched/schedule.h"
#include "sched/symbolic.h"

namespace tensorsmith::sched {

struct StageRegion {
  IdVector<IteratorId, int64_t> extents;
  std::vector<int64_t> root_extent;  // by root axis
  std::vector<Sym> root_min;         // by root axis, in the arena
  std::vector<uint8_t> root_may_leave;
};

class RegionInference {
 public:
  // The error names the stage that is not well-formed. The results are valid until the next run.
  Status run(const Schedule& schedule);

  // Returns an empty region for placeholders and inlined stages.
  const StageRegion& stage(StageId s) const { return regions_[s]; }
  const SymArena& arena() const { return arena_; }

 private:
  class Reader;  // turns expressions into ranges
  struct Loop {
    SymLoopId id;  // none for iterators that are no leaf or have extent 1
    Sym value;     // the loop's variable, or 0
  };

  Status infer_region(StageId s);
  Status mark_inside(StageId s);
  Status check_in_scope(StageId s, StageId reader) const;
  Error error(StageId s, std::string reason) const;
  void make_loops(StageId s);
  void pass_up(StageId r);
  void take_read(const Stage& stage, const Stage& reader, const Reads::Use& use);
  bool eval(const Stage& reader, const Reads::Index& index, SymRange* out);
  bool fits(ir::DType dtype, const SymRange& range) const;

  const Schedule* schedule_ = nullptr;
  SymArena arena_;
  IdVector<StageId, StageRegion> regions_;
  IdVector<StageId, IdVector<IteratorId, Loop>> loops_;
  // Scratch memory.
  IdVector<SymLoopId, char> inside_;
  IdVector<IteratorId, SymRange> axes_;
  bool fills_region_ = false;  // of the stage whose region is being inferred
  std::vector<SymRange> region_;
  std::vector<char> seen_;  // by dimension: region_ contains a read
};

}  // namespace tensorsmith::sched
