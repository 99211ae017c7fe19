#include "engine/report/decision_importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/result.h"
#include "base/rng.h"

namespace tensorsmith::engine {
namespace {

constexpr double kChanceQuantile = 0.95;

double squares_about_mean(const std::vector<double>& logs) {
  double sum = 0;
  for (const double log : logs) sum += log;
  const double mean = sum / logs.size();
  double squares = 0;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  return squares;
}

// A column prepared as cell indices, so that each shuffle costs one pass over the programs.
class Analysis {
 public:
  Analysis(const DecisionColumn& column, size_t programs) {
    TS_CHECK(column.group.size() == programs && column.value.size() == programs,
             "a column of decisions does not have one value per program");
    std::map<std::pair<int, int64_t>, size_t> cells;
    std::map<int, size_t> groups;
    for (size_t p = 0; p < programs; ++p) {
      if (column.group[p] < 0) continue;
      const auto [group, new_group] = groups.emplace(column.group[p], members_.size());
      if (new_group) members_.emplace_back();
      const auto [cell, new_cell] =
          cells.emplace(std::pair(column.group[p], column.value[p]), cell_group_.size());
      if (new_cell) {
        cell_group_.push_back(group->second);
        cell_size_.push_back(0);
      }
      ++cell_size_[cell->second];
      members_[group->second].push_back(p);
      cell_of_.emplace_back(p, cell->second);
    }
    values_.resize(members_.size());
    for (const size_t group : cell_group_) ++values_[group];
  }

  const std::vector<std::vector<size_t>>& groups() const { return members_; }

  // Returns the sum over groups of the squares that the values explain, less the part that random
  // values explain on average: for n programs with k values, (k - 1) / (n - 1) of the group's sum
  // of squares.
  double explained(const std::vector<double>& logs) const {
    std::vector<double> sums(cell_group_.size(), 0);
    for (const auto& [program, cell] : cell_of_) sums[cell] += logs[program];
    std::vector<double> between(members_.size(), 0);
    for (size_t c = 0; c < sums.size(); ++c) between[cell_group_[c]] += sums[c] * sums[c] / cell_size_[c];
    double explained = 0;
    for (size_t g = 0; g < members_.size(); ++g) {
      const auto n = static_cast<double>(members_[g].size()), k = static_cast<double>(values_[g]);
      if (values_[g] < 2 || k >= n) continue;
      double sum = 0, squares = 0;
      for (const size_t p : members_[g]) {
        sum += logs[p];
        squares += logs[p] * logs[p];
      }
      const double all = squares - sum * sum / n;
      const double by_chance = (k - 1) / (n - 1);
      explained += (between[g] - sum * sum / n - by_chance * all) / (1 - by_chance);
    }
    return explained;
  }

 private:
  std::vector<std::vector<size_t>> members_;  // programs by group
  std::vector<size_t> values_;                // number of different values by group
  std::vector<size_t> cell_group_, cell_size_;
  std::vector<std::pair<size_t, size_t>> cell_of_;  // program, cell
};

}  // namespace

std::vector<ExplainedSpread> explained_spread(const std::vector<double>& logs,
                                              const std::vector<DecisionColumn>& columns, int shuffles,
                                              uint64_t seed) {
  std::vector<ExplainedSpread> found(columns.size());
  if (logs.size() < 2) return found;
  const double total = squares_about_mean(logs);
  if (!(total > 0)) return found;
  // Centred values lose no precision in the sums of squares.
  std::vector<double> centred = logs;
  double mean = 0;
  for (const double log : logs) mean += log / logs.size();
  for (double& log : centred) log -= mean;
  Rng rng(seed);
  for (size_t c = 0; c < columns.size(); ++c) {
    const Analysis analysis(columns[c], logs.size());
    found[c].share = analysis.explained(centred) / total;
    std::vector<double> shuffled = centred, reached;
    for (int s = 0; s < shuffles; ++s) {
      for (const std::vector<size_t>& members : analysis.groups())
        for (size_t i = members.size(); i > 1; --i)
          std::swap(shuffled[members[i - 1]], shuffled[members[rng.below(i)]]);
      reached.push_back(analysis.explained(shuffled) / total);
    }
    if (reached.empty()) continue;
    const auto at = static_cast<size_t>(std::ceil(kChanceQuantile * reached.size())) - 1;
    std::nth_element(reached.begin(), reached.begin() + at, reached.end());
    found[c].chance = reached[at];
  }
  return found;
}

}  // namespace tensorsmith::engine
