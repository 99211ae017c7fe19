// What proposes candidates for one task. All strategies see the task through the same few functions, so that
// they can be compared, and tested on synthetic landscapes.
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
  double seconds = 0;  // +inf for failed ones
  record::Reason reason = record::Reason::kUnstated;
};

// What a strategy proposes, and why.
struct ProposedCandidate {
  space::Candidate candidate;
  record::Reason reason = record::Reason::kPredicted;
};

struct ScoredCandidate {
  space::Candidate candidate;
  float score = 0;
};

// How one task looks to a strategy. Scores: higher is faster, -inf for candidates that cannot be built.
struct StrategyView {
  const SearchSpace* space = nullptr;
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
  // Writes candidates of the task; null: there is none. What it fails with goes to `failed`.
  ScheduleWriter* writer = nullptr;
  std::function<void(const Error&)> failed;
  // Of a batch, the share that is random, whatever the scores (epsilon-greedy).
  double epsilon = 0.07;
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  // At most count different candidates, none known; fewer only if no more are found (a small or exhausted
  // space).
  virtual std::vector<ProposedCandidate> propose(const StrategyView& view, size_t count, Rng& rng) = 0;
};

// Unless another one is asked for.
inline constexpr std::string_view kDefaultStrategy = "evolutionary";

struct StrategyKind {
  std::string_view name;  // stored in records, so never renamed
  std::unique_ptr<Strategy> (*make)();
  bool uses_scores = true;  // where false, no cost model is trained
  bool only_seeds = false;  // measures what comes from outside (TuneTask::seeds) and nothing else
  bool uses_draft = true;   // where false, the design space's estimate ranks nothing
  // What it does with StrategyView::writer: nothing, asks it where there is one, or proposes nothing else.
  enum class Writer : uint8_t { kNone, kAsked, kNeeded } writer = Writer::kNone;
};

// Of all strategies, as "a, b, c": for helps and errors.
std::string strategy_names();
// kInvalidArgument for none of them; the reason lists the names.
Result<const StrategyKind*> find_strategy(std::string_view name);

// Shared by the strategies: appends random candidates that are neither known nor in result until that holds
// count, or nothing new is found. Falls back to enumeration where sampling finds nothing new, so that small
// spaces are exhausted.
void append_random(const StrategyView& view, size_t count, Rng& rng, std::vector<ProposedCandidate>& result);

// Of a batch, epsilon * count on average: a whole number near it.
size_t random_share(double epsilon, size_t count, Rng& rng);

// Of the measured candidates that ran, the fastest, at most count, fastest first.
std::vector<space::Candidate> fastest_measured(const StrategyView& view, size_t count);

}  // namespace tensorsmith::search
