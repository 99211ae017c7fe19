// The interface of strategies, which propose candidates for one task. A strategy accesses the task
// only through a few functions, so that strategies can be compared, and tested on synthetic
// landscapes.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "record/candidate.h"
#include "search/schedule_writer.h"
#include "search/search_space.h"

namespace tensorsmith::search {

struct MeasuredCandidate {
  space::Candidate candidate;
  double seconds = 0;  // +inf for failed candidates
  record::Reason reason = record::Reason::kUnstated;
  double cost = 0;  // by the run's objective; candidates of equal cost are ordered by their seconds
};

// A proposed candidate with the reason for it.
struct ProposedCandidate {
  space::Candidate candidate;
  record::Reason reason = record::Reason::kPredicted;
};

struct ScoredCandidate {
  space::Candidate candidate;
  float score = 0;
};

// A strategy's view of one task. Scores: higher is better (faster, unless the run has another
// objective), -inf for candidates that cannot be built.
struct StrategyView {
  const SearchSpace* space = nullptr;
  // Cheap draft score from the decisions alone: minus the logarithm of the cost, normally seconds.
  std::function<double(const space::Candidate&)> draft;
  // Full scores of a batch, in order.
  std::function<std::vector<float>(std::span<const space::Candidate>)> score;
  // Chooses a batch among scored candidates: returns at most this many of their indices, best choice first.
  // Empty if nothing but the scores is known.
  std::function<std::vector<size_t>(std::span<const ScoredCandidate>, size_t)> choose;
  std::span<const MeasuredCandidate> measured;
  // True for candidates that were measured, or would give a program that was.
  std::function<bool(const space::Candidate&)> known;
  // Number of candidates that may be fully scored for this proposal.
  size_t score_budget = 512;
  // Used share of the time or trials, from 0 at the start to 1 at the end. Towards the end,
  // refining known candidates gains more than exploring.
  double progress = 0;
  // Writes candidates of the task; null if there is none. Its errors are passed to `failed`.
  ScheduleWriter* writer = nullptr;
  std::function<void(const Error&)> failed;
  // Share of a batch that is random, whatever the scores (epsilon-greedy).
  double epsilon = 0.03;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  // Returns at most `count` different unknown candidates; fewer only if no more are found (in a
  // small or exhausted space).
  virtual std::vector<ProposedCandidate> propose(const StrategyView& view, size_t count, Rng& rng) = 0;
};

struct StrategyKind {
  std::string_view name;  // stored in records, so never renamed
  std::unique_ptr<Strategy> (*make)();
  bool uses_scores = true;    // false: no cost model is trained
  bool only_seeds = false;    // measures only candidates from outside (TuneTask::seeds)
  bool uses_draft = true;     // false: the estimate of the design space ranks nothing
  bool asks_writer = false;   // uses StrategyView::writer, if there is one
  bool needs_writer = false;  // proposes nothing without a writer
};

// Shared by the strategies: appends random candidates that are neither known nor in `result` until
// it holds `count` or nothing new is found. Enumerates the space if sampling finds nothing new, so
// that small spaces are exhausted.
void append_random(const StrategyView& view, size_t count, Rng& rng, std::vector<ProposedCandidate>& result);

// Returns epsilon * count, randomly rounded up or down so that the mean is exact.
size_t random_share(double epsilon, size_t count, Rng& rng);

// Returns the best measured candidates that ran, at most `count`, best first.
std::vector<space::Candidate> fastest_measured(const StrategyView& view, size_t count);

}  // namespace tensorsmith::search
