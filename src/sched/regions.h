// Bound inference before its results become expressions: for passes that run for every candidate of a search.
// infer_bounds (schedule.h) says what is inferred; here the first index of each region is a Sym over the
// loops, and all memory is used again by the next run.
#pragma once

#include <vector>

#include "sched/schedule.h"
#include "sched/symbolic.h"

namespace tensorsmith::sched {

struct StageRegion {
  std::vector<int64_t> extents;      // by arena id
  std::vector<int64_t> root_extent;  // by root axis
  std::vector<Sym> root_min;         // by root axis, in the arena
  std::vector<uint8_t> root_may_leave;
};

class RegionInference {
 public:
  // The error names the stage that is not well-formed. The results hold until the next run.
  Status run(const Schedule& schedule);

  // By stage index; nothing for placeholders and inlined stages.
  const StageRegion& stage(size_t s) const { return regions_[s]; }
  const SymArena& arena() const { return arena_; }

 private:
  struct Loop {
    int index = -1;  // in the arena; -1: no leaf, or of extent 1
    Sym value;       // the variable, or 0
  };

  Status infer_region(size_t s);
  Status mark_inside(size_t s);
  Status check_in_scope(size_t s, size_t reader) const;
  Error error(size_t s, std::string reason) const;
  void make_loops(size_t s);
  void pass_up(size_t r);
  void take_read(const Stage& stage, const Stage& reader, const Reads::Use& use);
  bool eval(const Stage& reader, const Reads::Index& index, SymRange* out);
  bool eval(const ir::Operation& reader, const ir::Expr& e, SymRange* out);
  bool eval_binary(ir::BinaryOp op, SymRange b, SymRange* out);
  bool fits(ir::DType dtype, const SymRange& range) const;

  const Schedule* schedule_ = nullptr;
  SymArena arena_;
  std::vector<StageRegion> regions_;
  std::vector<std::vector<Loop>> loops_;  // by stage and iterator
  // Scratch.
  std::vector<char> inside_;  // by loop
  std::vector<SymRange> axes_;
  std::vector<SymRange> region_;
  std::vector<char> seen_;  // by dimension: region_ holds a read
};

}  // namespace tensorsmith::sched
