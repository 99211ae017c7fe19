#include "search/pace.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensorsmith::search {

namespace {

// Time that proposals may take, relative to the measuring time.
constexpr double kProposalTimeShare = 0.25;

}  // namespace

double Pace::trial_cost(size_t task) const {
  constexpr double kLeast = 1e-4;
  if (task_trials_[task] > 1) return std::max(task_seconds_[task] / task_trials_[task], kLeast);
  return limits_.trials() > 0 ? std::max(measuring_seconds_ / limits_.trials(), kLeast) : 1;
}

double Pace::measuring_seconds_left() const {
  double left = std::numeric_limits<double>::infinity();
  if (options_.seconds > 0) {
    const double spent = measuring_seconds_ + proposing_seconds_;
    const double share = spent > 0 ? measuring_seconds_ / spent : 1;
    left = std::max(limits_.seconds_left(), 0.0) * share;
  }
  if (options_.trials > 0) {
    const int64_t done = limits_.trials();
    const double per_trial = done > 0 ? measuring_seconds_ / done : 1;
    left = std::min(left, std::max<int64_t>(options_.trials - done, 0) * per_trial);
  }
  return left;
}

size_t Pace::batch_size(size_t task, size_t seeds) const {
  // The first batches of a task are small, so that a wrong belief about it costs few trials. Seeds do not
  // follow from such a belief. The numbers were chosen as docs/decisions/057-choice-of-batches.md says.
  constexpr double kFirst = 3, kGrowth = 0.75;
  const size_t tasks = task_trials_.size();
  const double grown =
      std::max({kFirst, 1 + kGrowth * static_cast<double>(task_trials_[task]), static_cast<double>(seeds)});
  size_t batch = std::min<size_t>(std::max(options_.batch, 1), std::lround(grown));
  if (options_.trials > 0) {
    const size_t left = std::max<int64_t>(options_.trials - limits_.trials(), 0);
    // Small batches, so that every task that matters gets a few rounds.
    if (left / batch < 3 * tasks) batch = std::min(batch, std::max<size_t>(4, batch / 2));
    batch = std::min(batch, left);
  }
  if (options_.seconds > 0 && limits_.trials() > 0 && measuring_seconds_ > 0) {
    const double left = limits_.seconds_left();
    const double per_trial = measuring_seconds_ / limits_.trials();
    const double affordable = left / per_trial;
    if (affordable < batch * 3 * tasks) batch = std::min(batch, std::max<size_t>(4, batch / 2));
    batch = std::min(batch, static_cast<size_t>(std::max(left / std::max(trial_cost(task), per_trial), 1.0)));
  }
  return std::max<size_t>(batch, 1);
}

void Pace::proposed(size_t task, size_t scored, double seconds) {
  proposing_seconds_ += seconds;
  task_proposing_seconds_[task] += seconds;
  ++proposals_;
  candidate_seconds_[task] = seconds / std::max<size_t>(scored, 1);
  slowest_candidate_ = std::max(slowest_candidate_, candidate_seconds_[task]);
}

double Pace::proposal_seconds() const {
  double seconds = kProposalTimeShare * std::max(measuring_seconds_, 1.0);
  if (options_.seconds > 0) seconds = std::min(seconds, limits_.seconds_left());
  return seconds;
}

size_t Pace::score_budget(size_t task) const {
  constexpr double kLeast = 96, kMost = 2048;
  constexpr size_t kFirst = 1024;
  // Uses the rates seen so far. proposal_seconds() limits a slow first proposal.
  if (proposals_ == 0 || proposing_seconds_ <= 0 || measuring_seconds_ <= 0) return kFirst;
  const double share = proposing_seconds_ / (kProposalTimeShare * measuring_seconds_);
  double budget = 512 / std::max(share, 0.25);
  // A slow model takes a hundred times longer for candidates of large programs than for those of
  // small ones.
  const double slow = candidate_seconds_[task] > 0 ? candidate_seconds_[task] : slowest_candidate_;
  budget = std::min(budget, std::max(proposal_seconds(), 0.0) / slow);
  return static_cast<size_t>(std::clamp(budget, kLeast, kMost));
}

}  // namespace tensorsmith::search
