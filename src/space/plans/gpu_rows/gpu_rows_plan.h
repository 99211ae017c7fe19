// Row-wise reductions on a GPU (softmax, layer normalization, means, products of a matrix and a
// vector). A block computes a few rows. The threads of a row each reduce a part of it in registers
// and store the result in shared memory. These partial results are combined in at most two steps,
// each by as many threads as it has results:
//
//   sum[row] of 256 lanes:  sum.rf[row, 256] in registers -> [row, 16] -> [row]
//
// Elementwise stages of a row are either recomputed by each reader or computed once, into shared
// memory.
#pragma once

#include <string>
#include <vector>

#include "space/estimate/gpu_kernel.h"
#include "space/plan_kind.h"
#include "space/row_members.h"

namespace tensorsmith::space {

class GpuRowsPlan final : public Plan {
 public:
  explicit GpuRowsPlan(const PlanContext& context, const Group& group);

  std::string describe() const override;
  void emit(TraceMaker& maker, Decisions d) const override;
  Status check(Decisions d) const override;
  double estimate(Decisions d, EstimateParts*) const override;

 private:
  struct Member : RowMember {
    size_t shared_slot = kNone;     // elementwise stages only
    std::vector<AxisId> lane_axes;  // reductions only: reduce axes that lanes share, as one loop
  };

  void find_lanes(Member& member);

  int64_t threads(Decisions d) const { return warp_ << category(d, threads_slot_); }
  int64_t rows(Decisions d) const { return rows_slot_ == kNone ? 1 : int64_t{1} << category(d, rows_slot_); }
  int64_t lanes(Decisions d) const { return std::max<int64_t>(1, threads(d) / rows(d)); }
  int64_t vector(Decisions d) const {
    return vector_slot_ == kNone ? 1 : int64_t{1} << category(d, vector_slot_);
  }
  bool in_shared(Decisions d, const Member& member) const {
    return member.shared_slot != kNone && category(d, member.shared_slot) == 1;
  }
  // Returns the lanes of a reduction's rows; fewer if it does not have enough points.
  int64_t lanes_of(Decisions d, const Member& member) const;
  // Returns the lanes that the first combining step leaves; 1: there is no second step.
  static int64_t second_lanes(int64_t lanes);
  // Returns the elements of a member that a block computes.
  double points_of_block(Decisions d, const Member& member) const;
  GpuBlock block(Decisions d) const;

  LoopId emit_root(TraceMaker& maker, Decisions d) const;
  void emit_reduction(TraceMaker& maker, Decisions d, const Member& member, StageId stage,
                      LoopId attach) const;
  void emit_step(TraceMaker& maker, Decisions d, StageId stage, AxisId row,
                 const std::vector<AxisId>& columns, LoopId attach) const;
  LoopId bind(TraceMaker& maker, Decisions d, StageId stage, AxisId row,
              const std::vector<AxisId>& columns) const;
  // Annotations of rows and lanes, the two axes of a block's threads.
  sched::Annotation row_threads() const;
  sched::Annotation lane_threads(Decisions d) const;
  // Return the axis of a member of which a block computes a few points, and the axes that it
  // computes as a whole.
  AxisId row_of(const Member& member) const;
  std::vector<AxisId> columns_of(const Member& member) const;

  StageId output_;
  std::vector<StageId> pads_;
  const StageInfo& info_;
  bool self_;                           // the output is a reduction
  std::vector<Member> members_;         // consumers before producers
  std::vector<AxisId> rows_, columns_;  // of extent > 1
  bool lanes_last_ = true;              // adjacent threads are lanes of a row, not adjacent rows
  int64_t warp_;
  size_t threads_slot_ = kNone, rows_slot_ = kNone, vector_slot_ = kNone;
};

}  // namespace tensorsmith::space
