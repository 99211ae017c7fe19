// Metrics of predictions, as TenSet defines them (NeurIPS 2021 datasets track,
// scripts/eval_model.py) where it has them. A label is y = min seconds of the task / seconds, so
// the fastest program has 1 and failed programs have 0.
#pragma once

#include <span>
#include <vector>

namespace tensorsmith::learn {

// Arithmetic mean of at least one value.
double mean_of(std::span<const double> values);

// Root mean squared difference; 0 if there are no items. In all metrics, the spans must have equal
// sizes.
double rmse(std::span<const double> truth, std::span<const double> predicted);

// Share of pairs i < j with (predicted_i > predicted_j) == (label_i > label_j); 1 for fewer than
// two items.
double pairwise_accuracy(std::span<const double> labels, std::span<const double> scores);

// Mean over i = 1..k of (best label among the i items with the highest scores) / (best label). Ties
// keep their order. 0 if no label is positive.
double peak_at_k(std::span<const double> labels, std::span<const double> scores, int k);

struct ScoredTask {
  double weight = 1;            // number of times the network runs the task
  std::vector<double> seconds;  // +inf for failed programs
  std::vector<double> scores;   // higher = predicted faster
};
// sum_t weight * min seconds / sum_t weight * min seconds of the k best-scored programs of t. 0 if
// for some task all of these k programs failed.
double top_k_score(std::span<const ScoredTask> network, int k);

}  // namespace tensorsmith::learn
