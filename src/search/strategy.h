// What proposes candidates for one task. All strategies see the task through the same few functions, so that
// they can be compared, and tested on synthetic landscapes.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/rng.h"
#include "search/tuner.h"
#include "space/design_space.h"

namespace tensorsmith::search {

struct MeasuredCandidate {
  space::Candidate candidate;
  double seconds = 0;  // +inf for failed ones
};

struct ScoredCandidate {
  space::Candidate candidate;
  float score = 0;
};

// How one task looks to a strategy. Scores: higher is faster, -inf for candidates that cannot be built.
struct StrategyView {
  const space::DesignSpace* space = nullptr;
  // Cheap draft score, from the decisions alone: minus the logarithm of seconds.
  std::function<double(const space::Candidate&)> draft;
  // Full score of a batch, in order.
  std::function<std::vector<float>(std::span<const space::Candidate>)> score;
  std::span<const MeasuredCandidate> measured;
  // True for candidates that were measured or would give a program that was.
  std::function<bool(const space::Candidate&)> known;
  // How many candidates may be scored in full for this proposal.
  size_t score_budget = 512;
  // Of the time or trials, how much is used up: 0 at the start, 1 at the end. Towards the end refining what
  // is known pays more than exploring.
  double progress = 0;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  // At most count different candidates, none known; fewer only if no more are found (a small or exhausted
  // space).
  virtual std::vector<space::Candidate> propose(const StrategyView& view, size_t count, Rng& rng) = 0;
};

std::unique_ptr<Strategy> make_strategy(StrategyKind kind);

// Shared by the strategies: unseen random candidates, at most count. Falls back to enumeration where sampling
// finds nothing new, so that small spaces are exhausted.
std::vector<space::Candidate> sample_unseen(const StrategyView& view, size_t count,
                                            std::span<const space::Candidate> taken, Rng& rng);

}  // namespace tensorsmith::search
