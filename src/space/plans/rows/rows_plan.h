// Row-wise reductions (softmax, layer normalization, means): the root stage's rows run outside (in parallel),
// and everything that one row needs is computed inside its iteration. Where rows are contiguous in memory
// several rows fill a vector; else reductions along the contiguous axis are factored into vector lanes.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "space/plan_kind.h"
#include "space/row_members.h"

namespace tensorsmith::space {

class RowsPlan final : public Plan {
 public:
  // `attached`: producers before consumers; empty if the output is the reduction itself.
  RowsPlan(const PlanContext& context, StageId output, std::vector<StageId> attached);

  std::string describe() const override;

  void emit(TraceMaker& maker, Decisions d) const override;

  Status check(Decisions) const override { return {}; }

  double estimate(Decisions d, EstimateParts* parts) const override;

 private:
  struct Member : RowMember {
    AxisId factor_axis;  // reduce axis that is contiguous in the reads, or none
    size_t factor_slot = kNone, inline_slot = kNone;
  };

  bool maps_to(const Member& member, AxisId axis) const {
    return std::find(member.to_output.begin(), member.to_output.end(), axis) != member.to_output.end();
  }

  void find_factor_axis(Member& member) const;

  // Returns whether some reduction reads whole vectors along a reduce axis, and none reads along
  // the rows.
  bool reduces_along_memory();

  size_t parallel(Decisions d) const { return parallel_slot_ == kNone ? 0 : category(d, parallel_slot_); }

  int64_t factor_of(const Member& member, size_t choice) const;

  int64_t row_width(Decisions d) const;

  // Cycles of what the group reads from outside. Each tensor is streamed once; data that all rows
  // share is streamed again for each row if it exceeds L1. `waited` is not hidden by anything: that
  // repeated data, and pieces of rows that are pages apart.
  struct Traffic {
    double streamed = 0, waited = 0;  // cycles
    double once = 0;                  // bytes that are read at least once
  };
  Traffic traffic_cycles(Decisions d) const;

  // Returns by how many elements a member's read moves from one row to the next, in vectors of
  // rows.
  int64_t stride_along_rows(const Member& member, const Read& read) const;

  // Orders a member's loops so that the vector axis is innermost, and vectorizes it.
  void emit_member(TraceMaker& maker, Decisions d, const Member& member, StageId stage,
                   sched::TailPolicy tail) const;

  void emit_reduction(TraceMaker& maker, Decisions d, const Member& member, StageId stage, LoopId attach,
                      sched::TailPolicy tail) const;

  StageId output_;
  const StageInfo& info_;
  bool self_ = false;
  std::vector<Member> members_;         // consumers before producers
  std::vector<AxisId> rows_, columns_;  // of extent > 1
  bool contiguous_row_ = false;
  int64_t lanes_ = 1;
  size_t width_slot_ = kNone, parallel_slot_ = kNone, tail_slot_ = kNone;
};

}  // namespace tensorsmith::space
