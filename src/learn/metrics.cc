#include "learn/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/result.h"

namespace tensorsmith::learn {

namespace {

std::vector<size_t> best_first(std::span<const double> scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

void check_sizes(size_t a, size_t b) { TS_CHECK(a == b, "metrics: spans of different sizes"); }

}  // namespace

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / values.size();
}

double rmse(std::span<const double> truth, std::span<const double> predicted) {
  check_sizes(truth.size(), predicted.size());
  if (truth.empty()) return 0;
  double sum = 0;
  for (size_t i = 0; i < truth.size(); ++i) sum += (truth[i] - predicted[i]) * (truth[i] - predicted[i]);
  return std::sqrt(sum / truth.size());
}

double pairwise_accuracy(std::span<const double> labels, std::span<const double> scores) {
  check_sizes(labels.size(), scores.size());
  const size_t n = labels.size();
  if (n < 2) return 1;
  int64_t agree = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) agree += (scores[i] > scores[j]) == (labels[i] > labels[j]) ? 1 : 0;
  }
  return agree / (0.5 * n * (n - 1));
}

double peak_at_k(std::span<const double> labels, std::span<const double> scores, int k) {
  check_sizes(labels.size(), scores.size());
  if (labels.empty() || k < 1) return 0;
  const double best = *std::max_element(labels.begin(), labels.end());
  if (!(best > 0)) return 0;
  const std::vector<size_t> order = best_first(scores);
  double sum = 0, running = -std::numeric_limits<double>::infinity();
  for (int i = 0; i < k; ++i) {
    if (i < std::ssize(order)) running = std::max(running, labels[order[i]]);
    sum += running / best;
  }
  return sum / k;
}

double top_k_score(std::span<const ScoredTask> network, int k) {
  double best_total = 0, chosen_total = 0;
  for (const ScoredTask& task : network) {
    check_sizes(task.seconds.size(), task.scores.size());
    if (task.seconds.empty()) continue;
    const std::vector<size_t> order = best_first(task.scores);
    double chosen = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < std::min<size_t>(std::max(k, 0), order.size()); ++i)
      chosen = std::min(chosen, task.seconds[order[i]]);
    best_total += task.weight * *std::min_element(task.seconds.begin(), task.seconds.end());
    chosen_total += task.weight * chosen;
  }
  return std::isfinite(chosen_total) && chosen_total > 0 ? best_total / chosen_total : 0;
}

}  // namespace tensorsmith::learn
