// Evaluates how well a model trained on one workload ranks the programs of another.
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
  RankSetOptions sets;  // its seed is also that of the first training
  int seeds = 3;        // number of trainings, with different seeds
};

struct TransferRow {
  size_t train = 0, test = 0;  // indices of tasks
  FeatureSet features{};
  Learner learner{};
  RankScores mean;         // over seeds and sets
  double top_half_sd = 0;  // standard deviation over the seeds of the mean over the sets
};

// For each ordered pair of tasks with at least set_size programs: train_on_programs on the first,
// and evaluation on RankSets of the second. These sets are the same for all features and learners.
Result<std::vector<TransferRow>> compare_features(const ProfiledPrograms& data,
                                                  const TransferOptions& options,
                                                  const std::function<void(const TransferRow&)>& done);

// Returns the permutation importance of each column: the increase of the mean squared error when
// the column's values are exchanged between the programs of a task, as a share of the variance.
// Models are trained on the given programs with five folds and evaluated on the fold left out. In
// the order of the columns.
Result<std::vector<double>> importance(const ProfiledPrograms& data, std::span<const size_t> programs,
                                       FeatureSet features, uint64_t seed);

}  // namespace tensorsmith::learn
