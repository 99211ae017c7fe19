// A plan schedules one group of stages: a root stage and the stages attached to its loops. A sketch
// is a plan for each group of the workload.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "space/design_space.h"
#include "space/estimate/parts.h"
#include "space/plan_context.h"
#include "space/tile_lengths.h"
#include "space/trace_maker.h"

namespace tensorsmith::space {

// A decision slot with the data that sampling needs.
struct Slot {
  DecisionSlot decision;
  std::optional<TileLengths> tiles;  // kTileLengths
  int64_t unit = 1;                  // innermost lengths prefer multiples of this
  std::vector<double> weights;       // kCategory: sampling weights, one per category
  size_t offset = 0;                 // index of its first number in the plan's decisions

  size_t width() const { return decision.kind == DecisionKind::kTileLengths ? decision.parts : 1; }
};

using Decisions = std::span<const int64_t>;   // of one plan's slots
using AxisRanges = IdVector<AxisId, double>;  // number of points along each axis of a stage

class Plan {
 public:
  explicit Plan(const PlanContext& context) : context_(context) {}
  virtual ~Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const std::vector<Slot>& slots() const { return slots_; }
  size_t width() const { return slots_.empty() ? 0 : slots_.back().offset + slots_.back().width(); }

  virtual std::string describe() const = 0;
  virtual void emit(TraceMaker& maker, Decisions decisions) const = 0;
  // Returns kResourceExhausted with the reason for candidates that are not worth examining.
  virtual Status check(Decisions decisions) const = 0;
  // Estimates seconds with an analytic model; only the order within one workload matters. parts: receives
  // the quantities that the estimate is made of, which are zero before; may be null.
  virtual double estimate(Decisions decisions, EstimateParts* parts) const = 0;
  virtual void sample(Rng& rng, std::span<int64_t> decisions) const;

 protected:
  static constexpr size_t kNone = SIZE_MAX;  // no slot

  // Both return the slot's index. `divide`: see TileLengths.
  size_t add_tile(std::string name, int64_t extent, size_t parts, int64_t unit, int64_t max_innermost = 0,
                  bool divide = false);
  size_t add_category(std::string name, DecisionRole role, std::vector<double> weights);
  size_t category(Decisions d, size_t slot) const { return d[slots_[slot].offset]; }
  Decisions lengths(Decisions d, size_t slot) const {
    return d.subspan(slots_[slot].offset, slots_[slot].width());
  }
  void sample_slot(Rng& rng, size_t slot, std::span<int64_t> decisions) const;
  // Draws one of the categories for which `allowed` is true once the category is set in
  // `decisions`; takes the first one if there is none.
  void sample_allowed(Rng& rng, size_t slot, std::span<int64_t> decisions,
                      const std::function<bool()>& allowed) const;
  // Adds a slot for the number of outer loops that are parallel, from 0 to `loops`. Returns kNone if `loops`
  // is 0 or the device has one thread.
  size_t add_parallel(const std::string& stage, size_t loops);
  // Adds a slot for the lanes of vectors that threads of a GPU access, which are powers of two. Returns kNone
  // if only one lane is possible. `fits(lanes)` returns whether the elements can be accessed in such vectors.
  size_t add_gpu_vector(std::string name, int64_t element_bytes, const std::function<bool(int64_t)>& fits);
  // Sets one length of a tile slot, then fits all lengths of the slot to its extent. Returns the length that
  // results.
  int64_t set_length(std::span<int64_t> decisions, size_t slot, size_t part, int64_t wanted) const;
  // Returns the error of check() for a candidate that is not worth examining.
  Error refuse(StageId stage, std::string reason) const {
    return {ErrorCode::kResourceExhausted, context_.op(stage).name, std::move(reason)};
  }
  // Returns how many elements of each dimension of a read are touched while the reader's axes cover
  // `ranges`.
  AxisRanges footprint(const Read& read, const AxisRanges& ranges) const;
  // Returns the bytes that a read needs of its producer: all of them, or an element for each point of the
  // reader if the index is not affine. Example: 128 rows that are gathered from a table of 30,522.
  double read_bytes(const StageInfo& reader, const Read& read) const;

  const PlanContext& context_;

 private:
  std::vector<Slot> slots_;
};

}  // namespace tensorsmith::space
