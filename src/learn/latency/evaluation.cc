#include "learn/latency/evaluation.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/statistics.h"
#include "learn/latency/queries.h"
#include "learn/metrics.h"

namespace tensorsmith::learn {

void Evaluation::add(const StoredWorkload& workload, const std::string& device, double measured,
                     const Prediction& predicted) {
  const auto [it, added] = numbers_.try_emplace({workload.key, device}, tasks_.size());
  if (added) tasks_.push_back({workload.key, workload.name, device, 0, {}});
  Task& task = tasks_[it->second];
  if (!std::isfinite(measured)) {
    ++task.failed;
    return;
  }
  task.items.push_back({measured, predicted.seconds, predicted.ranked(), predicted.log_sigma,
                        predicted.half90(), predicted.half95()});
}

template <class Key>
std::vector<std::pair<std::string, Scores>> Evaluation::grouped(Key key) const {
  std::map<std::string, std::vector<const Task*>> groups;
  for (const Task& task : tasks_) groups[key(task)].push_back(&task);
  std::vector<std::pair<std::string, Scores>> out;
  for (const auto& [name, tasks] : groups) {
    Scores scores;
    std::vector<double> errors;
    std::vector<ScoredTask> ranked;
    double squares = 0, log_squares = 0, errors_sum = 0;
    int64_t pairs_tasks = 0;
    for (const Task* task : tasks) {
      scores.failed += task->failed;
      if (task->items.empty()) continue;
      ++scores.tasks;
      scores.records += std::ssize(task->items);
      ScoredTask& r = ranked.emplace_back();
      std::vector<double> speeds;
      for (const Item& item : task->items) {
        const double error = item.predicted - item.measured;
        errors.push_back(std::abs(error) / item.measured);
        errors_sum += errors.back();
        squares += error * error;
        const double log_error = std::log(item.predicted / item.measured);
        log_squares += log_error * log_error;
        r.seconds.push_back(item.measured);
        r.scores.push_back(-item.ranked);
        speeds.push_back(1 / item.measured);
      }
      scores.peak1 += peak_at_k(speeds, r.scores, 1);
      scores.peak5 += peak_at_k(speeds, r.scores, 5);
      if (speeds.size() < 2) continue;
      ++pairs_tasks;
      scores.pairwise += pairwise_accuracy(speeds, r.scores);
    }
    if (scores.records > 0) {
      const double n = scores.records, t = scores.tasks;
      scores.mape = errors_sum / n;
      scores.mape_median = errors.empty() ? 0 : median(std::move(errors));
      scores.rmse = std::sqrt(squares / n);
      scores.rmse_log = std::sqrt(log_squares / n);
      scores.top1 = top_k_score(ranked, 1);
      scores.top5 = top_k_score(ranked, 5);
      scores.peak1 /= t;
      scores.peak5 /= t;
      // Without pairs, none is ranked wrongly (as in learn/metrics.h).
      scores.pairwise = pairs_tasks > 0 ? scores.pairwise / pairs_tasks : 1;
    }
    out.emplace_back(name, scores);
  }
  return out;
}

Scores Evaluation::total() const {
  const auto all = grouped([](const Task&) { return std::string(); });
  return all.empty() ? Scores() : all.front().second;
}

std::vector<std::pair<std::string, Scores>> Evaluation::by_operator() const {
  return grouped([](const Task& task) { return task.name; });
}

std::vector<std::pair<std::string, Scores>> Evaluation::by_device() const {
  return grouped([](const Task& task) { return task.device; });
}

int64_t Evaluation::seen_workloads(const std::vector<std::string>& keys) const {
  std::set<std::string> seen;
  for (const Task& task : tasks_) {
    if (std::binary_search(keys.begin(), keys.end(), task.workload)) seen.insert(task.workload);
  }
  return std::ssize(seen);
}

int64_t Evaluation::workloads() const {
  std::set<std::string> all;
  for (const Task& task : tasks_) all.insert(task.workload);
  return std::ssize(all);
}

double Evaluation::log_sigma() const {
  std::vector<double> errors;
  for (const Task& task : tasks_) {
    for (const Item& item : task.items) errors.push_back(std::abs(std::log(item.predicted / item.measured)));
  }
  return errors.empty() ? 0 : quantile(std::move(errors), 0.6827);
}

double Evaluation::inside(double Item::* half_width) const {
  int64_t inside = 0, all = 0;
  for (const Task& task : tasks_) {
    for (const Item& item : task.items) {
      if (item.log_sigma <= 0) continue;
      inside += std::abs(std::log(item.predicted / item.measured)) <= item.*half_width ? 1 : 0;
      ++all;
    }
  }
  return static_cast<double>(inside) / std::max<int64_t>(all, 1);
}

std::pair<double, double> Evaluation::coverage() const {
  return {inside(&Item::log_sigma), inside(&Item::half95)};
}

double Evaluation::coverage90() const { return inside(&Item::half90); }

int64_t Evaluation::without_interval() const {
  int64_t out = 0;
  for (const Task& task : tasks_)
    out +=
        std::count_if(task.items.begin(), task.items.end(), [](const Item& i) { return i.log_sigma <= 0; });
  return out;
}

Result<Evaluation> evaluate_records(const CostModel& model, const Store& store,
                                    std::span<const target::Device* const> devices,
                                    std::span<const int64_t> records) {
  std::vector<int64_t> made;
  for (const int64_t i : records) {
    if (store.entry(i).leaves > 0) made.push_back(i);
  }
  TS_ASSIGN_OR_RETURN(const auto predicted, predict_records(model, store, devices, made));
  Evaluation evaluation;
  for (size_t i = 0; i < made.size(); ++i) {
    const Store::Entry entry = store.entry(made[i]);
    evaluation.add(store.workloads()[entry.workload], devices[entry.device]->name,
                   entry.failed() ? INFINITY : entry.mean_seconds, predicted[i]);
  }
  return evaluation;
}

Result<std::string> validation_metrics(const CostModel& model, const TrainingData& data) {
  if (data.validation.empty()) return std::string("{}");
  TS_ASSIGN_OR_RETURN(const Evaluation evaluation,
                      evaluate_records(model, *data.store, data.devices, data.validation));
  return to_json(evaluation.total(), model.ranks_only()).dump();
}

nlohmann::ordered_json to_json(const Scores& s, bool ranks_only) {
  nlohmann::ordered_json out;
  const auto error = [&](double value) {
    return ranks_only ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  out["mape"] = error(s.mape);
  out["mape_median"] = error(s.mape_median);
  out["rmse"] = error(s.rmse);
  out["rmse_log"] = error(s.rmse_log);
  out["top1"] = s.top1;
  out["top5"] = s.top5;
  out["peak1"] = s.peak1;
  out["peak5"] = s.peak5;
  out["pairwise"] = s.pairwise;
  out["records"] = s.records;
  out["failed"] = s.failed;
  out["tasks"] = s.tasks;
  return out;
}

}  // namespace tensorsmith::learn
