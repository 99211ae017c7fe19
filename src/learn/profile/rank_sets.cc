#include "learn/profile/rank_sets.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "base/rng.h"
#include "learn/metrics.h"
#include "learn/profile/ranker.h"

namespace tensorsmith::learn {
namespace {

std::vector<double> chosen(std::span<const double> from, std::span<const size_t> places) {
  std::vector<double> out;
  for (const size_t i : places) out.push_back(from[i]);
  return out;
}

// Returns the indices of the half with the largest values, in ascending order; ties keep their
// order.
std::vector<size_t> best_half(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
  order.resize(values.size() / 2);
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace

RankScores rank_scores(std::span<const double> labels, std::span<const double> scores) {
  RankScores out;
  const std::vector<size_t> fast = best_half(labels), found = best_half(scores);
  std::vector<size_t> both;
  std::set_intersection(fast.begin(), fast.end(), found.begin(), found.end(), std::back_inserter(both));
  out.top_half = static_cast<double>(both.size()) / std::max<size_t>(fast.size(), 1);
  out.misranked = 1 - pairwise_accuracy(labels, scores);
  const auto first = std::max_element(scores.begin(), scores.end()) - scores.begin();
  out.top1_gap = std::exp(*std::max_element(labels.begin(), labels.end()) - labels[first]) - 1;
  const double shift = mean_of(scores) - mean_of(labels);
  std::vector<double> shifted;
  for (const double score : scores) shifted.push_back(score - shift);
  out.rmse = rmse(labels, shifted);
  return out;
}

void add(RankScores& sum, const RankScores& x, double weight) {
  sum.top_half += weight * x.top_half;
  sum.misranked += weight * x.misranked;
  sum.top1_gap += weight * x.top1_gap;
  sum.rmse += weight * x.rmse;
}

RankSets::RankSets(const ProfiledPrograms& data, size_t task, const RankSetOptions& options)
    : programs_(data.of_task(task)), labels_(speeds_of(data, programs_)) {
  Rng rng(Hasher().add(options.seed).add(data.tasks[task].key).digest64());
  std::vector<size_t> places(programs_.size());
  std::iota(places.begin(), places.end(), size_t{0});
  for (int d = 0; d < options.draws; ++d) {
    draws_.push_back(shuffled(places, rng));
    draws_.back().resize(options.set_size);
  }
}

RankScores RankSets::mean(std::span<const double> scores) const {
  RankScores out;
  for (const auto& draw : draws_)
    add(out, rank_scores(chosen(labels_, draw), chosen(scores, draw)), 1.0 / draws_.size());
  return out;
}

std::vector<size_t> tasks_with(const ProfiledPrograms& data, int64_t programs) {
  std::vector<size_t> out;
  for (size_t t = 0; t < data.tasks.size(); ++t)
    if (std::ssize(data.of_task(t)) >= programs) out.push_back(t);
  return out;
}

Result<std::vector<TaskRanking>> rank_tasks(const ProfiledPrograms& data, const CostModel& model,
                                            const RankSetOptions& options) {
  const std::vector<size_t> tasks = tasks_with(data, options.set_size);
  if (tasks.empty())
    return Error{ErrorCode::kInvalidArgument, "profiles",
                 "no task has at least " + std::to_string(options.set_size) + " profiled programs"};
  std::vector<TaskRanking> out;
  for (const size_t task : tasks) {
    const RankSets sets(data, task, options);
    std::vector<ProgramQuery> queries;
    for (const size_t program : sets.programs()) queries.push_back(data.query(program));
    TS_ASSIGN_OR_RETURN(const auto predictions, model.predict(queries));
    std::vector<double> scores;
    for (const Prediction& prediction : predictions) scores.push_back(-std::log(prediction.ranked()));
    out.push_back({task, std::ssize(queries), sets.mean(scores)});
  }
  return out;
}

}  // namespace tensorsmith::learn
