// How good predictions are. Definitions of TenSet (NeurIPS 2021 datasets track, scripts/eval_model.py), see
// each. A label is y = min seconds of the task / seconds, so that 1 is best and failed programs have 0.
#pragma once

#include <span>
#include <vector>

namespace tensorsmith::learn {

// Root of the mean squared difference; 0 for no items. Spans are of equal size in every metric.
double rmse(std::span<const double> truth, std::span<const double> predicted);

// 1 - residual sum of squares / total sum of squares; 0 where all truths are equal.
double r_squared(std::span<const double> truth, std::span<const double> predicted);

// Mean of |truth - predicted| / |truth| over the items whose truth is finite and not 0: seconds of failed
// programs (infinite) would explode it.
double mape(std::span<const double> truth, std::span<const double> predicted);

// The share of pairs i < j with (predicted_i > predicted_j) == (label_i > label_j); 1 for less than two
// items.
double pairwise_accuracy(std::span<const double> labels, std::span<const double> scores);

// Mean over i = 1..k of (the best label among the i best-scored) / (the best label). Equal scores keep their
// order. 0 where no label is positive.
double peak_at_k(std::span<const double> labels, std::span<const double> scores, int k);

// Kendall's tau-b and Spearman's rank correlation (mean ranks for ties); 0 where one side is constant.
double kendall_tau(std::span<const double> truth, std::span<const double> predicted);
double spearman(std::span<const double> truth, std::span<const double> predicted);

struct ScoredTask {
  double weight = 1;            // how often the network runs it
  std::vector<double> seconds;  // +inf for failed programs
  std::vector<double> scores;   // higher = predicted faster
};
// sum_t weight * min seconds / sum_t weight * min seconds of the k best-scored programs of t. 0 where some
// task has no success among its k.
double top_k_score(std::span<const ScoredTask> network, int k);

}  // namespace tensorsmith::learn
