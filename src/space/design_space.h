// The design space of a workload on a device: sketches (structure) and decision vectors (tile
// sizes, locations, annotations). Search works on candidates; a trace is only made for those that
// are measured, or if the cost model reads traces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "sched/step.h"

namespace tensorsmith::space {

struct Constants;      // estimate/constants.h
struct EstimateParts;  // estimate/parts.h

// How a decision is stored: the inner lengths of one split axis, or the index of a category.
enum class DecisionKind : uint8_t { kTileLengths, kCategory };
// The subject of a decision. Mutations change some roles more often than others.
enum class DecisionRole : uint8_t {
  kTile,       // sizes of tiles
  kUnroll,     // how many points are unrolled, or how many chunks of a GPU's copies run ahead
  kLocation,   // in which loop or memory a stage is computed, and the order of loops
  kParallel,   // which loops are parallel, or how many threads a GPU's block has
  kVectorize,  // which loop becomes vectors, and how long they are
  kLayout,     // whether operands are packed or copied, and how their rows are aligned
  kTail,       // how tiles that extend beyond the tensor are handled
  kCacheWrite  // whether a result or an operand is kept in a temporary near the computation
};
std::string_view to_string(DecisionRole role);  // for example "cache_write"

struct DecisionSlot {
  std::string name;  // "conv.tile.oc", for people
  DecisionKind kind = DecisionKind::kCategory;
  DecisionRole role = DecisionRole::kTile;
  int64_t extent = 0;         // kTileLengths: the axis' extent
  size_t parts = 0;           // kTileLengths: how many inner lengths
  int64_t max_innermost = 0;  // kTileLengths: cap of the innermost length, 0 = none
  int64_t categories = 0;     // kCategory: how many
};

struct Candidate {
  int sketch = 0;
  // Flattened by slot: `parts` inner lengths (outer to inner) for kTileLengths, one index for kCategory.
  std::vector<int64_t> decisions;
  uint64_t hash() const;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

class DesignSpace {
 public:
  struct Options {
    // Allows 3x3 convolutions by Winograd's minimal filtering, whose rounding errors are larger
    // than those of the direct sum (see algorithm.h).
    bool winograd = true;
    // Constants of the estimate. Null means default_constants(). The space keeps the pointer and reads
    // the constants for every estimate, so a fit can change them in place.
    const Constants* constants = nullptr;
  };
  static Result<DesignSpace> build(const ir::Workload& workload, const target::Device& device,
                                   const Options& options);

  size_t num_sketches() const;
  // For workloads with many groups: returns the number of combinations of plans that the space
  // leaves out, those with the most unusual plans. Each would take a share of the samples.
  double sketches_left_out() const;
  const std::vector<DecisionSlot>& slots(int sketch) const;
  // Describes the structure for people. Equal texts mean equal structures (see rescale).
  std::string describe(int sketch) const;

  // The untuned schedule: good by a heuristic, without measurements. Always legal.
  Candidate default_candidate() const;
  // Plain loops, for use if the default cannot be built or run. Always legal.
  Candidate plain_candidate() const;
  Candidate sample(Rng& rng) const;
  // Changes one decision, drawn by role (mostly tiles), and sometimes a second tile. Never returns
  // the same candidate unless the space has only one.
  Candidate mutate(const Candidate& candidate, Rng& rng) const;
  // Returns the legal candidates that differ in one decision: by a small move for tile lengths, in
  // any way for categories. These are the steps of a coordinate descent.
  std::vector<Candidate> neighbours(const Candidate& candidate) const;
  Candidate crossover(const Candidate& a, const Candidate& b,
                      Rng& rng) const;  // same sketch, else a copy of a
  // Number of candidates of a sketch, exact when below 2^53.
  double size(int sketch) const;
  // All candidates of a sketch, in order, at most limit.
  std::vector<Candidate> enumerate(int sketch, size_t limit) const;
  // Checks legality and plausibility (registers, workspace, code size) cheaply; the error is the
  // reason.
  Status check(const Candidate& candidate) const;
  // Returns the candidate of this space that is nearest to one of a space with the same structure
  // but other shapes (transfer).
  Result<Candidate> rescale(const DesignSpace& source, const Candidate& candidate) const;

  // Estimates the seconds of a candidate with an analytic model of the decisions alone, without
  // lowering (about a microsecond). This is a draft to rank many candidates, not a prediction. +inf
  // if check() refuses the candidate.
  double estimate(const Candidate& candidate) const;

  // Fills the quantities that the estimate of a legal candidate is made of.
  void estimate_parts(const Candidate& candidate, EstimateParts& parts) const;

  Result<sched::Trace> to_trace(const Candidate& candidate) const;
  // Computes the schedule that replaying the trace gives, without making the trace, in a tenth of
  // the time: what candidates share is rewritten once. The memory of `out` is reused; after an
  // error its content is unspecified.
  Status to_schedule(const Candidate& candidate, sched::Schedule& out) const;
  const ir::Workload& workload() const;

 private:
  friend class SketchGrammar;
  friend class CandidateWalk;
  struct Impl;
  explicit DesignSpace(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tensorsmith::space
