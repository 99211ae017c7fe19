#include "search/batch_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "learn/online/error_process.h"

namespace tensorsmith::search {

namespace {

// The constants of this file were chosen on the validation part of recorded searches
// (docs/decisions/057-choice-of-batches.md has the command).
//
// With equal beliefs, a random program is as good as any until this many programs are measured.
constexpr size_t kLeastMeasured = 8;
constexpr double kEqualBeliefs = 1e-6;
// The error that is assumed for a failed program exceeds the largest one by this much.
constexpr double kFailed = 1;
// Most measured programs that correct beliefs: the fastest ones and the latest ones.
constexpr size_t kFastest = 64, kLatest = 128;
constexpr double kLeastSigma = 0.1, kMostSigma = 1;

// Returns per column of the program's rows their sum and their largest value. Empty if there are no rows.
std::vector<float> pooled(const ProgramInputs& inputs) {
  const feature::FeatureMatrix& rows = inputs.rows.rows > 0 ? inputs.rows : inputs.leaves.vectors;
  if (rows.rows == 0) return {};
  std::vector<float> out(2 * feature::kPerStoreWidth, 0);
  for (int c = 0; c < feature::kPerStoreWidth; ++c) {
    float sum = 0, largest = rows.row(0)[c];
    for (int r = 0; r < rows.rows; ++r) {
      sum += rows.row(r)[c];
      largest = std::max(largest, rows.row(r)[c]);
    }
    out[c] = sum;
    out[feature::kPerStoreWidth + c] = largest;
  }
  return out;
}

// Returns log(measured / believed cost) of the programs; failed ones get an error above all others.
std::vector<double> errors_of(const std::vector<MeasuredBelief>& measured) {
  std::vector<double> errors;
  double largest = -std::numeric_limits<double>::infinity();
  for (const MeasuredBelief& m : measured) {
    errors.push_back(m.log_cost - m.program.belief.log_cost);
    if (std::isfinite(errors.back())) largest = std::max(largest, errors.back());
  }
  const double failed = kFailed + (std::isfinite(largest) ? largest : 0);
  for (double& error : errors)
    if (!std::isfinite(error)) error = failed;
  return errors;
}

// Returns the expected value of max(0, best - x) for a normally distributed x (Jones, Schonlau and Welch,
// 1998).
double expected_improvement(double best, double mean, double deviation) {
  const double z = (best - mean) / deviation;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  return deviation * (z * below + density);
}

bool equal_beliefs(const std::vector<BelievedProgram>& programs) {
  const auto [least, most] =
      std::minmax_element(programs.begin(), programs.end(),
                          [](const auto& a, const auto& b) { return a.belief.log_cost < b.belief.log_cost; });
  return most->belief.log_cost - least->belief.log_cost < kEqualBeliefs;
}

}  // namespace

std::vector<size_t> informative(std::span<const double> log_costs) {
  std::vector<size_t> order(log_costs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t old = order.size() - std::min(order.size(), kLatest);
  const size_t kept = std::min(old, kFastest);
  std::partial_sort(order.begin(), order.begin() + kept, order.begin() + old,
                    [&](size_t a, size_t b) { return log_costs[a] < log_costs[b]; });
  order.erase(order.begin() + kept, order.begin() + old);
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<size_t> choose_batch(const std::vector<BelievedProgram>& programs,
                                 const std::vector<MeasuredBelief>& measured, size_t count) {
  std::vector<size_t> chosen(programs.size());
  std::iota(chosen.begin(), chosen.end(), size_t{0});
  count = std::min(count, programs.size());
  double best = std::numeric_limits<double>::infinity();
  for (const MeasuredBelief& m : measured) best = std::min(best, m.log_cost);
  std::vector<std::vector<float>> features;
  double sigma = 0;
  for (const BelievedProgram& program : programs) {
    features.push_back(program.inputs != nullptr ? pooled(*program.inputs) : std::vector<float>());
    sigma += program.belief.sigma / static_cast<double>(programs.size());
  }
  for (const MeasuredBelief& m : measured)
    features.push_back(m.program.inputs != nullptr ? pooled(*m.program.inputs) : std::vector<float>());
  const bool described =
      std::none_of(features.begin(), features.end(), [](const auto& row) { return row.empty(); });
  if (count == 0 || !described || !std::isfinite(best) ||
      (measured.size() < kLeastMeasured && equal_beliefs(programs))) {
    chosen.resize(count);
    return chosen;
  }
  const learn::ProgramPoints points(features);
  std::vector<size_t> places(measured.size());
  std::iota(places.begin(), places.end(), programs.size());
  learn::ErrorProcess process(points, places, errors_of(measured),
                              std::clamp(sigma, kLeastSigma, kMostSigma));
  chosen.clear();
  std::vector<bool> taken(programs.size(), false);
  while (chosen.size() < count) {
    size_t next = std::find(taken.begin(), taken.end(), false) - taken.begin();
    double most = -1;
    for (size_t i = next; i < programs.size(); ++i) {
      if (taken[i]) continue;
      const double mean = programs[i].belief.log_cost + process.mean(i);
      const double gain = expected_improvement(best, mean, std::sqrt(process.variance(i)));
      if (!(gain > most)) continue;
      most = gain;
      next = i;
    }
    taken[next] = true;
    chosen.push_back(next);
    best = std::min(best, programs[next].belief.log_cost + process.mean(next));
    process.assume(next);
  }
  return chosen;
}

}  // namespace tensorsmith::search
