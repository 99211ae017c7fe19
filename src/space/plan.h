// A plan schedules one group of stages: a root stage and what is attached to its loops. A sketch is a plan
// for each group of the workload.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sched/step.h"
#include "space/analysis.h"
#include "space/design_space.h"
#include "space/machine.h"
#include "space/tile_lengths.h"
#include "space/trace_maker.h"

namespace tensorsmith::space {

// A decision slot with what sampling needs.
struct Slot {
  DecisionSlot decision;
  std::optional<TileLengths> tiles;  // kTileLengths
  int64_t unit = 1;                  // innermost lengths prefer multiples of this
  std::vector<double> weights;       // kCategory: sampling weights, one a category
  size_t offset = 0;                 // of its first number in the plan's decisions

  size_t width() const {
    return decision.kind == DecisionKind::kTileLengths ? static_cast<size_t>(decision.parts) : 1;
  }
};

// Where the stages of a convolution stand that sched::Winograd has rewritten.
struct WinogradStages {
  int64_t m = 4;  // outputs of a tile by dimension
  int weights = 0, data = 0, rows = 0, input = 0, product = 0, columns = 0;
  int result = 0;  // the stage that was the convolution
};

// Where the stages of an attention stand: product = sum over keys of exponential(masked - maximum) * values.
struct AttentionStages {
  int scores = 0, masked = 0;  // the same if nothing is done to the scores
  int maximum = 0, exponential = 0, sum = 0, product = 0;
};

// Shared by all plans of an algorithm; outlives them.
struct PlanContext {
  const ir::Workload* workload = nullptr;
  const WorkloadAnalysis* analysis = nullptr;
  Machine machine;
  int threads = 1;
  std::vector<bool> inlined;  // by operation: always inlined in this space
  std::vector<WinogradStages> winograd;
  std::vector<AttentionStages> attention;

  const StageInfo& stage(int s) const { return analysis->stages[static_cast<size_t>(s)]; }
  const ir::Operation& op(int s) const { return *workload->operations[static_cast<size_t>(s)]; }
  std::string axis_name(int s, int axis) const;
};

// Largest definition that plans make by inlining, written out. Less than what the step allows, because
// indices grow too when they are written into each other.
inline constexpr int64_t kMaxWrittenSize = sched::kMaxInlinedSize / 4;
// Size of a stage's definition, written out, with the inlined producers in it, whose sizes are known (by
// operation).
int64_t written_size(const ir::Workload& workload, size_t stage, const std::vector<bool>& inlined,
                     const std::vector<int64_t>& written);
// Whether no definition becomes larger than kMaxWrittenSize with these operations inlined.
bool inlining_fits(const ir::Workload& workload, const std::vector<bool>& inlined);

// The reads of a stage with those of always-inlined producers replaced by what they read themselves; equal
// ones are listed once. x * sigmoid(x) with both operations inlined is one read of x.
std::vector<Read> effective_reads(const PlanContext& context, int stage);

using Decisions = std::span<const int64_t>;  // of one plan's slots

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
  // kResourceExhausted with the reason for candidates not worth a look.
  virtual Status check(Decisions decisions) const = 0;
  // Rough seconds from an analytic model; only the order within one workload matters.
  virtual double estimate(Decisions decisions) const = 0;
  virtual void sample(Rng& rng, std::span<int64_t> decisions) const;

 protected:
  // Both return the slot's index. divide: see TileLengths.
  size_t add_tile(std::string name, int64_t extent, int parts, int64_t unit, int64_t max_innermost = 0,
                  bool divide = false);
  size_t add_category(std::string name, DecisionRole role, std::vector<double> weights);
  int64_t category(Decisions d, size_t slot) const { return d[slots_[slot].offset]; }
  Decisions lengths(Decisions d, size_t slot) const {
    return d.subspan(slots_[slot].offset, slots_[slot].width());
  }
  void sample_slot(Rng& rng, size_t slot, std::span<int64_t> decisions) const;
  // Elements of each dimension of a read that are touched while the reader's axes cover `ranges`.
  std::vector<double> footprint(const Read& read, std::span<const double> ranges) const;

  const PlanContext& context_;

 private:
  std::vector<Slot> slots_;
};

// The largest divisor of n that is at most limit; 1 if there is no other.
int64_t largest_divisor(int64_t n, int64_t limit);

// Widest vector for an innermost loop of this length: the largest divisor of length that is at most `lanes`,
// a power of two where it is longer than 16; 1 = do not vectorize.
int64_t vector_lanes(int64_t length, int64_t lanes);

// Cycles to read `length` elements that lie `stride` apart into vectors of `lanes`: contiguous vectors,
// vectors that are shuffled together, or single elements.
double read_cycles(int64_t stride, double length, double lanes);

// Predicated tails decide in every iteration, lane by lane in vectors: how much slower a loop of this length
// gets. Peeled tails cost next to nothing.
double tail_factor(int64_t extent, int64_t tile, bool vectorized, sched::TailPolicy tail);

// Adds up the `lanes` partial results of a stage that sched::Rfactor has made, at most `vector` at a time, in
// halves, each half a vector: {16} -> {8} -> {4} -> {2}, which leaves one addition. The stages that this
// takes are appended to `partials`.
void combine_lanes(TraceMaker& maker, TraceMaker::StageId stage, int64_t lanes, int64_t vector,
                   std::vector<TraceMaker::StageId>& partials);

// Fuses the outermost loops that come first in `outer` until the fused extent is enough for the threads and
// marks them parallel: the number of loops is count.
void parallelize(TraceMaker& maker, TraceMaker::StageId stage, const std::vector<TraceMaker::LoopId>& outer,
                 size_t count);

// Schedules a purely spatial stage in place: rows outside, the contiguous axis split into vectors. extents:
// of its loops where it is computed. parallel: at root.
void emit_copy_stage(TraceMaker& maker, TraceMaker::StageId stage, std::span<const int64_t> extents,
                     int contiguous_axis, int64_t lanes, bool parallel, sched::TailPolicy tail);

std::unique_ptr<Plan> make_tiled_plan(const PlanContext& context, int output, int anchor,
                                      std::vector<int> pads, bool two_level);
// Null where the anchor reduces over no small sliding window or its output has no contiguous axis.
std::unique_ptr<Plan> make_window_plan(const PlanContext& context, int output, int anchor,
                                       std::vector<int> pads);
std::unique_ptr<Plan> make_rows_plan(const PlanContext& context, int output, std::vector<int> attached);
std::unique_ptr<Plan> make_winograd_plan(const PlanContext& context, int output,
                                         const WinogradStages& stages);
std::unique_ptr<Plan> make_attention_plan(const PlanContext& context, int output,
                                          const AttentionStages& stages);
std::unique_ptr<Plan> make_spatial_plan(const PlanContext& context, int output, bool tiled);
// Nothing but a parallel outermost loop: legal for every stage.
std::unique_ptr<Plan> make_plain_plan(const PlanContext& context, int output);

}  // namespace tensorsmith::space
