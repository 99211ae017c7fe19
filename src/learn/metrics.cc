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

// Returns ranks from 1 on; equal values share their mean rank.
std::vector<double> mean_ranks(std::span<const double> values) {
  const std::vector<size_t> order = best_first(values);
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = (begin + 1 + end) / 2.0;
    begin = end;
  }
  return ranks;
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

double r_squared(std::span<const double> truth, std::span<const double> predicted) {
  check_sizes(truth.size(), predicted.size());
  if (truth.empty()) return 0;
  const double mean = mean_of(truth);
  double residual = 0, total = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    residual += (truth[i] - predicted[i]) * (truth[i] - predicted[i]);
    total += (truth[i] - mean) * (truth[i] - mean);
  }
  return total > 0 ? 1 - residual / total : 0;
}

double mape(std::span<const double> truth, std::span<const double> predicted) {
  check_sizes(truth.size(), predicted.size());
  double sum = 0;
  int64_t count = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    if (!std::isfinite(truth[i]) || truth[i] == 0) continue;
    sum += std::abs(truth[i] - predicted[i]) / std::abs(truth[i]);
    ++count;
  }
  return count > 0 ? sum / count : 0;
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

double kendall_tau(std::span<const double> truth, std::span<const double> predicted) {
  check_sizes(truth.size(), predicted.size());
  const size_t n = truth.size();
  int64_t difference = 0, untied_truth = 0, untied_predicted = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      const int a = (truth[i] > truth[j]) - (truth[i] < truth[j]);
      const int b = (predicted[i] > predicted[j]) - (predicted[i] < predicted[j]);
      difference += a * b;
      untied_truth += a != 0 ? 1 : 0;
      untied_predicted += b != 0 ? 1 : 0;
    }
  }
  if (untied_truth == 0 || untied_predicted == 0) return 0;
  return difference / std::sqrt(static_cast<double>(untied_truth) * untied_predicted);
}

double spearman(std::span<const double> truth, std::span<const double> predicted) {
  check_sizes(truth.size(), predicted.size());
  if (truth.empty()) return 0;
  const std::vector<double> a = mean_ranks(truth), b = mean_ranks(predicted);
  const double mean = (truth.size() + 1) / 2.0;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
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
