// Ranking programs of one workload by a model that was trained on another one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "learn/profile/ranker.h"

namespace tensorsmith::learn {

// Of sets of programs of one workload.
struct RankScores {
  double top_half = 0;   // share of the faster half that is among the half with the best scores
  double misranked = 0;  // share of pairs in the wrong order
  double top1_gap = 0;   // seconds of the program with the best score over those of the fastest, minus 1
  double rmse = 0;       // of the logarithms of relative speeds, each set's mean taken off
};
// labels, scores: by program, higher is faster.
RankScores rank_scores(std::span<const double> labels, std::span<const double> scores);

struct TransferOptions {
  std::vector<FeatureSet> features = {FeatureSet::kPerStore, FeatureSet::kSummary, FeatureSet::kProfile};
  std::vector<Learner> learners = {Learner::kXgboost};
  int64_t set_size = 64;
  int draws = 20;  // of sets
  int seeds = 3;   // of trainings
  uint64_t seed = 0;
};

struct TransferRow {
  size_t train = 0, test = 0;  // tasks
  FeatureSet features{};
  Learner learner{};
  RankScores mean;         // over seeds and draws
  double top_half_sd = 0;  // over seeds, each the mean over the draws
};

// Each pair of tasks with at least set_size programs. A fifth of the training task's programs, drawn by the seed,
// validates. The sets of a pair are the same for all features and learners.
Result<std::vector<TransferRow>> compare_features(const ProfiledPrograms& data,
                                                  const TransferOptions& options,
                                                  const std::function<void(const TransferRow&)>& done);

// How much each column matters: what the mean squared error of a task's programs grows by when the column's values
// are exchanged between them, as a share of the variance. Models are trained on the task's own programs, by fifths, and
// asked about the others. In the order of the columns.
Result<std::vector<double>> importance(const ProfiledPrograms& data, std::span<const size_t> programs,
                                       FeatureSet features, uint64_t seed);

}  // namespace tensorsmith::learn
