// Ranking programs of one workload by a model that was trained on another one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "learn/profile/rank_sets.h"
#include "learn/profile/ranker.h"

namespace tensorsmith::learn {

struct TransferOptions {
  std::vector<FeatureSet> features = {FeatureSet::kPerStore, FeatureSet::kSummary, FeatureSet::kProfile};
  std::vector<Learner> learners = {Learner::kXgboost};
  RankSetOptions sets;  // its seed is that of the first training, too
  int seeds = 3;        // of trainings
};

struct TransferRow {
  size_t train = 0, test = 0;  // tasks
  FeatureSet features{};
  Learner learner{};
  RankScores mean;         // over seeds and draws
  double top_half_sd = 0;  // over seeds, each the mean over the draws
};

// Each pair of tasks with at least set_size programs; train_on_programs on the one, RankSets of the other, which are the
// same for all features and learners.
Result<std::vector<TransferRow>> compare_features(const ProfiledPrograms& data,
                                                  const TransferOptions& options,
                                                  const std::function<void(const TransferRow&)>& done);

// How much each column matters: what the mean squared error of a task's programs grows by when the column's values
// are exchanged between them, as a share of the variance. Models are trained on the task's own programs, by fifths, and
// asked about the others. In the order of the columns.
Result<std::vector<double>> importance(const ProfiledPrograms& data, std::span<const size_t> programs,
                                       FeatureSet features, uint64_t seed);

}  // namespace tensorsmith::learn
