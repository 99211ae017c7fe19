#include "learn/profile/transfer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "learn/metrics.h"

namespace tensorsmith::learn {
namespace {

constexpr size_t kFolds = 5;
constexpr int kExchanges = 5;

// Trains and evaluates one pair of tasks.
Result<TransferRow> run(const ProfiledPrograms& data, const TransferOptions& options, size_t train,
                        size_t test, FeatureSet features, Learner learner) {
  TransferRow row{train, test, features, learner, {}, 0};
  const RankSets sets(data, test, options.sets);
  const ProgramRows rows = rows_of(data, sets.programs(), features);
  std::vector<double> by_seed;
  for (int s = 0; s < options.seeds; ++s) {
    const auto seed = options.sets.seed + s;
    TS_ASSIGN_OR_RETURN(const auto ranker,
                        train_on_programs(data, data.of_task(train), features, learner, seed));
    const RankScores mean = sets.mean(ranker->scores(rows));
    add(row.mean, mean, 1.0 / options.seeds);
    by_seed.push_back(mean.top_half);
  }
  for (const double x : by_seed) row.top_half_sd += (x - row.mean.top_half) * (x - row.mean.top_half);
  row.top_half_sd = std::sqrt(row.top_half_sd / std::max(1.0, by_seed.size() - 1.0));
  return row;
}

double mean_squared(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum / std::max<size_t>(a.size(), 1);
}

// Permutes a column between programs: row r of a program gets the value of row r of another
// program, if that has one.
ProgramRows exchanged(const ProgramRows& rows, size_t column, std::span<const size_t> order) {
  ProgramRows out = rows;
  for (size_t p = 0; p < rows.programs(); ++p) {
    const size_t from = rows.begin[order[p]], many = rows.begin[order[p] + 1] - from;
    for (size_t r = 0; r < rows.begin[p + 1] - rows.begin[p] && r < many; ++r)
      out.values[(rows.begin[p] + r) * rows.width + column] = rows.values[(from + r) * rows.width + column];
  }
  return out;
}

}  // namespace

Result<std::vector<TransferRow>> compare_features(const ProfiledPrograms& data,
                                                  const TransferOptions& options,
                                                  const std::function<void(const TransferRow&)>& done) {
  std::vector<TransferRow> out;
  const std::vector<size_t> tasks = tasks_with(data, options.sets.set_size);
  if (tasks.size() < 2)
    return Error{
        ErrorCode::kInvalidArgument, "profiles",
        "fewer than two tasks have at least " + std::to_string(options.sets.set_size) + " profiled programs"};
  for (const size_t train : tasks) {
    for (const size_t test : tasks) {
      if (train == test) continue;
      for (const Learner learner : options.learners) {
        for (const FeatureSet features : options.features) {
          if (features == FeatureSet::kSummary && data.programs.front().summary.empty()) continue;
          TS_ASSIGN_OR_RETURN(out.emplace_back(), run(data, options, train, test, features, learner));
          if (done) done(out.back());
        }
      }
    }
  }
  return out;
}

Result<std::vector<double>> importance(const ProfiledPrograms& data, std::span<const size_t> programs,
                                       FeatureSet features, uint64_t seed) {
  Rng rng(seed);
  const std::vector<size_t> order = shuffled({programs.begin(), programs.end()}, rng);
  const std::vector<double> labels = speeds_of(data, order);
  const double mean = mean_of(labels);
  const double variance = mean_squared(labels, std::vector<double>(labels.size(), mean));
  std::vector<double> out;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<size_t> train, test;
    std::vector<double> train_labels, test_labels;
    for (size_t i = 0; i < order.size(); ++i) {
      (i % kFolds == fold ? test : train).push_back(order[i]);
      (i % kFolds == fold ? test_labels : train_labels).push_back(labels[i]);
    }
    const ProgramRows rows = rows_of(data, test, features);
    out.resize(rows.width, 0);
    TS_ASSIGN_OR_RETURN(const auto ranker,
                        train_ranker(Learner::kXgboost, rows_of(data, train, features), train_labels,
                                     ProgramRows{rows.width, {}, {0}}, {}, seed));
    const double before = mean_squared(ranker->scores(rows), test_labels);
    std::vector<size_t> places(test.size());
    std::iota(places.begin(), places.end(), size_t{0});
    for (size_t column = 0; column < rows.width; ++column) {
      for (int e = 0; e < kExchanges; ++e) {
        const auto after =
            mean_squared(ranker->scores(exchanged(rows, column, shuffled(places, rng))), test_labels);
        out[column] += (after - before) / std::max(variance, 1e-12) / (kFolds * kExchanges);
      }
    }
  }
  return out;
}

}  // namespace tensorsmith::learn
