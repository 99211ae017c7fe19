#include "learn/profile/transfer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "base/rng.h"
#include "learn/metrics.h"

namespace tensorsmith::learn {
namespace {

constexpr size_t kFolds = 5;
constexpr int kExchanges = 5;

std::vector<size_t> shuffled(std::vector<size_t> items, Rng& rng) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
  return items;
}

template <class T>
std::vector<T> chosen(std::span<const T> from, std::span<const size_t> places) {
  std::vector<T> out;
  for (const size_t i : places) out.push_back(from[i]);
  return out;
}

// Places of the best half; of equal ones the first.
std::vector<size_t> best_half(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
  order.resize(values.size() / 2);
  std::sort(order.begin(), order.end());
  return order;
}

void add(RankScores& sum, const RankScores& x, double weight) {
  sum.top_half += weight * x.top_half;
  sum.misranked += weight * x.misranked;
  sum.top1_gap += weight * x.top1_gap;
  sum.rmse += weight * x.rmse;
}

Result<std::unique_ptr<Ranker>> train_on(const ProfiledPrograms& data, std::span<const size_t> programs,
                                         FeatureSet features, Learner learner, uint64_t seed) {
  Rng rng(seed);
  const std::vector<size_t> order = shuffled({programs.begin(), programs.end()}, rng);
  const size_t validating = order.size() / kFolds;
  const std::span<const size_t> validation(order.data(), validating);
  const std::span<const size_t> train(order.data() + validating, order.size() - validating);
  // Speeds are relative to the fastest of all: the two parts compare.
  const std::vector<double> labels = speeds_of(data, order);
  return train_ranker(learner, rows_of(data, train, features), std::span(labels).subspan(validating),
                      rows_of(data, validation, features), std::span(labels).first(validating), seed);
}

class Pair {
 public:
  Pair(const ProfiledPrograms& data, const TransferOptions& options, size_t train, size_t test)
      : data_(data), options_(options), train_(train), test_(test), programs_(data.of_task(test)) {
    labels_ = speeds_of(data, programs_);
    Rng rng(Hasher().add(options.seed).add(data.tasks[train].key).add(data.tasks[test].key).digest64());
    std::vector<size_t> places(programs_.size());
    std::iota(places.begin(), places.end(), size_t{0});
    for (int d = 0; d < options.draws; ++d) {
      draws_.push_back(shuffled(places, rng));
      draws_.back().resize(static_cast<size_t>(options.set_size));
    }
  }

  Result<TransferRow> run(FeatureSet features, Learner learner) const {
    TransferRow row{train_, test_, features, learner, {}, 0};
    const ProgramRows rows = rows_of(data_, programs_, features);
    std::vector<double> by_seed;
    for (int s = 0; s < options_.seeds; ++s) {
      const auto seed = options_.seed + static_cast<uint64_t>(s);
      TS_ASSIGN_OR_RETURN(const auto ranker, train_on(data_, data_.of_task(train_), features, learner, seed));
      const std::vector<double> scores = ranker->scores(rows);
      RankScores mean;
      for (const auto& draw : draws_)
        add(mean, rank_scores(chosen<double>(labels_, draw), chosen<double>(scores, draw)),
            1.0 / options_.draws);
      add(row.mean, mean, 1.0 / options_.seeds);
      by_seed.push_back(mean.top_half);
    }
    for (const double x : by_seed) row.top_half_sd += (x - row.mean.top_half) * (x - row.mean.top_half);
    row.top_half_sd =
        std::sqrt(row.top_half_sd / std::max<double>(1, static_cast<double>(by_seed.size()) - 1));
    return row;
  }

 private:
  const ProfiledPrograms& data_;
  const TransferOptions& options_;
  size_t train_, test_;
  std::vector<size_t> programs_;
  std::vector<double> labels_;
  std::vector<std::vector<size_t>> draws_;
};

double mean_squared(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum / static_cast<double>(std::max<size_t>(a.size(), 1));
}

// Exchanges a column between programs: row r of a program gets the column of that row of another one, if it has it.
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

RankScores rank_scores(std::span<const double> labels, std::span<const double> scores) {
  RankScores out;
  const std::vector<size_t> fast = best_half(labels), found = best_half(scores);
  std::vector<size_t> both;
  std::set_intersection(fast.begin(), fast.end(), found.begin(), found.end(), std::back_inserter(both));
  out.top_half = static_cast<double>(both.size()) / static_cast<double>(std::max<size_t>(fast.size(), 1));
  out.misranked = 1 - pairwise_accuracy(labels, scores);
  const auto first = std::max_element(scores.begin(), scores.end()) - scores.begin();
  out.top1_gap =
      std::exp(*std::max_element(labels.begin(), labels.end()) - labels[static_cast<size_t>(first)]) - 1;
  const auto mean = [](std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const double shift = mean(scores) - mean(labels);
  std::vector<double> shifted;
  for (const double score : scores) shifted.push_back(score - shift);
  out.rmse = rmse(labels, shifted);
  return out;
}

Result<std::vector<TransferRow>> compare_features(const ProfiledPrograms& data,
                                                  const TransferOptions& options,
                                                  const std::function<void(const TransferRow&)>& done) {
  std::vector<TransferRow> out;
  std::vector<size_t> tasks;
  for (size_t t = 0; t < data.tasks.size(); ++t)
    if (static_cast<int64_t>(data.of_task(t).size()) >= options.set_size) tasks.push_back(t);
  if (tasks.size() < 2)
    return Error{ErrorCode::kInvalidArgument, "profiles",
                 "fewer than two tasks have " + std::to_string(options.set_size) + " profiled programs"};
  for (const size_t train : tasks) {
    for (const size_t test : tasks) {
      if (train == test) continue;
      const Pair pair(data, options, train, test);
      for (const Learner learner : options.learners) {
        for (const FeatureSet features : options.features) {
          if (features == FeatureSet::kSummary && data.programs.front().summary.empty()) continue;
          TS_ASSIGN_OR_RETURN(out.emplace_back(), pair.run(features, learner));
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
  const double mean = std::accumulate(labels.begin(), labels.end(), 0.0) / static_cast<double>(labels.size());
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
