// The design space of a workload on a device: sketches (structure) and decision vectors (tile sizes,
// locations, annotations). Search works on candidates; a trace is made only for what is looked at.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "sched/step.h"

namespace tensorsmith::space {

struct Constants;  // estimate/constants.h

// One choice. A tile decision holds the inner lengths of one split axis; a categorical one an index.
enum class DecisionKind : uint8_t { kTileLengths, kCategory };
enum class DecisionRole : uint8_t {
  kTile,
  kUnroll,
  kLocation,
  kParallel,
  kVectorize,
  kLayout,
  kTail,
  kCacheWrite
};

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
    int threads = 1;
    // 3x3 convolutions may be computed by Winograd's minimal filtering, whose rounding errors are larger than
    // those of the sum over products (see algorithm.h).
    bool winograd = true;
    // The estimate's; null: those of the table. Read by every estimate: who fits them changes them in place.
    const Constants* constants = nullptr;
  };
  static Result<DesignSpace> build(const ir::Workload& workload, const target::Device& device,
                                   const Options& options);

  size_t num_sketches() const;
  // Combinations of plans of a workload with many groups that the space does not have, because each would
  // take a share of the samples: those with the most unusual plans.
  double sketches_left_out() const;
  const std::vector<DecisionSlot>& slots(int sketch) const;
  // The structure, for people; equal texts are equal structures (rescale).
  std::string describe(int sketch) const;

  // The untuned schedule: heuristic, good, no measurement needed. Always legal.
  Candidate default_candidate() const;
  // Plain loops: what is left where the default cannot be built or run. Always legal.
  Candidate plain_candidate() const;
  Candidate sample(Rng& rng) const;
  // Changes one decision (its role is drawn first, mostly tiles); never returns the same candidate
  // unless the space has one point.
  Candidate mutate(const Candidate& candidate, Rng& rng) const;
  // The legal candidates that differ in one decision by a small move (tile lengths) or any (categories): the
  // steps of a coordinate descent.
  std::vector<Candidate> neighbours(const Candidate& candidate) const;
  Candidate crossover(const Candidate& a, const Candidate& b,
                      Rng& rng) const;  // same sketch, else a copy of a
  // Number of candidates of a sketch, exact when below 2^53.
  double size(int sketch) const;
  // All candidates of a sketch, in order, at most limit.
  std::vector<Candidate> enumerate(int sketch, size_t limit) const;
  // Cheap legality and sanity check (registers, workspace, code size); reason why not.
  Status check(const Candidate& candidate) const;
  // The candidate of this space nearest to one of a space with the same structure but other shapes
  // (transfer).
  Result<Candidate> rescale(const DesignSpace& source, const Candidate& candidate) const;

  // Rough seconds of a candidate from an analytic model on the decisions alone, without lowering (about a
  // microsecond): a draft to rank many candidates, not a prediction. +inf if check() refuses it.
  double estimate(const Candidate& candidate) const;

  Result<sched::Trace> to_trace(const Candidate& candidate) const;
  // What replaying the trace gives, without making it and for a tenth of the time: what candidates share is
  // rewritten once. The memory of `out` is used again; after an error it holds nothing of use.
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
