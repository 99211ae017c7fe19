#include "lab/learning_curve.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/json_text.h"
#include "base/rng.h"
#include "base/statistics.h"
#include "base/thread_pool.h"
#include "lab/kinds/kinds.h"
#include "lab/task_records.h"
#include "learn/latency/queries.h"
#include "learn/metrics.h"
#include "learn/profile/rank_sets.h"

namespace tensorsmith::lab {

namespace {

constexpr double kUnknownScore = std::numeric_limits<double>::quiet_NaN();

// Returns the tasks with their measured programs that have features, in the order of the store.
std::vector<TaskRecords> curve_tasks(const learn::Store& store, std::vector<int64_t> records) {
  std::erase_if(records, [&](int64_t i) {
    const learn::Store::Entry entry = store.entry(i);
    return entry.failed() || entry.leaves == 0;
  });
  return records_by_task(store, records);
}

bool has_enough(const TaskRecords& task, const LearningCurveOptions& options) {
  return std::ssize(task.records) >= int64_t{options.rounds} * options.batch;
}

// The rounds of one task: predicts each with one model and seed.
class CurveRounds {
 public:
  CurveRounds(const learn::Store& store, const std::vector<const target::Device*>& devices,
              const TaskRecords& task, const LearningCurveOptions& options, uint64_t seed,
              const std::atomic<bool>& cancel)
      : store_(store), devices_(devices), options_(options), seed_(seed), cancel_(cancel) {
    order_ = task.records;
    if (options.shuffled) {
      Rng rng(Hasher().add(seed).add(store.workloads()[task.workload].key).add(task.device).digest64());
      rng.shuffle(order_);
    }
    order_.resize(static_cast<size_t>(options.rounds) * options.batch);
  }

  // Fills in the scores. base: the pre-trained model; null: each model is trained from scratch.
  Status score(const learn::CostModelTrainer& trainer, const learn::CostModel* base,
               LearningCurve& out) const {
    for (int round = 0; round < options_.rounds; ++round) {
      const auto [earlier, next] = parts(round);
      std::unique_ptr<learn::CostModel> learned;
      if (!earlier.empty()) {
        TS_ASSIGN_OR_RETURN(learned, learn_from(trainer, base, earlier));
      }
      const learn::CostModel* model = earlier.empty() ? base : learned.get();
      if (model == nullptr) {
        out.top_half.push_back(kUnknownScore);
        out.rmse.push_back(kUnknownScore);
        continue;
      }
      TS_ASSIGN_OR_RETURN(const auto predictions, learn::predict_records(*model, store_, devices_, next));
      out.top_half.push_back(recall(next, predictions));
      out.rmse.push_back(earlier.empty() || model->ranks_only() ? kUnknownScore
                                                                : error(earlier, next, predictions));
    }
    return {};
  }

 private:
  // Returns the programs before the round, and those of the round.
  std::pair<std::span<const int64_t>, std::span<const int64_t>> parts(int round) const {
    const size_t begin = static_cast<size_t>(round) * options_.batch;
    return {std::span(order_).first(begin), std::span(order_).subspan(begin, options_.batch)};
  }

  Result<std::unique_ptr<learn::CostModel>> learn_from(const learn::CostModelTrainer& trainer,
                                                       const learn::CostModel* base,
                                                       std::span<const int64_t> earlier) const {
    learn::TrainingData data;
    data.store = &store_;
    data.train.assign(earlier.begin(), earlier.end());
    std::sort(data.train.begin(), data.train.end());
    data.devices = devices_;
    learn::TrainingControl control;
    control.seed = seed_;
    control.stop = [this] { return cancel_.load(); };
    return base != nullptr ? trainer.fine_tune(*base, data, control) : trainer.train(data, control);
  }

  double recall(std::span<const int64_t> round, const std::vector<learn::Prediction>& predictions) const {
    std::vector<double> labels, scores;
    for (size_t i = 0; i < round.size(); ++i) {
      labels.push_back(-std::log(store_.entry(round[i]).mean_seconds));
      scores.push_back(-std::log(predictions[i].ranked()));
    }
    return learn::rank_scores(labels, scores).top_half;
  }

  double error(std::span<const int64_t> earlier, std::span<const int64_t> round,
               const std::vector<learn::Prediction>& predictions) const {
    double fastest = std::numeric_limits<double>::infinity();
    for (const int64_t i : earlier) fastest = std::min(fastest, store_.entry(i).mean_seconds);
    std::vector<double> truth, predicted;
    for (size_t i = 0; i < round.size(); ++i) {
      truth.push_back(fastest / store_.entry(round[i]).mean_seconds);
      predicted.push_back(fastest / predictions[i].seconds);
    }
    return learn::rmse(truth, predicted);
  }

  const learn::Store& store_;
  const std::vector<const target::Device*>& devices_;
  const LearningCurveOptions& options_;
  uint64_t seed_;
  const std::atomic<bool>& cancel_;
  std::vector<int64_t> order_;
};

Result<std::vector<LearningCurve>> curves_of(const learn::Store& store,
                                             const std::vector<const target::Device*>& devices,
                                             const TaskRecords& task, const std::vector<CurveModel>& models,
                                             const LearningCurveOptions& options,
                                             const std::atomic<bool>& cancel) {
  const learn::StoredWorkload& workload = store.workloads()[task.workload];
  std::vector<LearningCurve> out;
  for (size_t m = 0; m < models.size(); ++m) {
    for (int seed = 0; seed < options.seeds; ++seed) {
      const CurveRounds rounds(store, devices, task, options, seed, cancel);
      const learn::CostModel& base = models[m].pretrained_of(seed);
      const std::vector<std::string>& known = base.card().workloads;
      for (const bool pretrained : {true, false}) {
        if (cancel) return Error{ErrorCode::kCancelled, "", "the evaluation was interrupted"};
        LearningCurve& curve = out.emplace_back();
        curve.device = store.devices()[task.device];
        curve.task = workload.key;
        curve.name = workload.name;
        curve.model = m;
        curve.pretrained = pretrained;
        curve.seed = seed;
        curve.seen = std::binary_search(known.begin(), known.end(), workload.key);
        const Status status = rounds.score(*models[m].trainer, pretrained ? &base : nullptr, curve);
        if (!status.ok())
          return Error{status.error().code, "model " + models[m].name + ", task '" + workload.name + "'",
                       status.error().message()};
      }
    }
  }
  return out;
}

}  // namespace

Result<CurveModel> make_curve_model(const std::string& name, const learn::TrainingData& training,
                                    const std::string& split, int seeds, int threads,
                                    const std::atomic<bool>& cancel) {
  const learn::CostModelKinds& kinds = cost_model_kinds();
  const std::vector<std::string> names = kinds.names();
  CurveModel out;
  out.name = name;
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    std::error_code ignored;
    if (!std::filesystem::exists(name, ignored)) {
      std::string listed;
      for (const std::string& kind : names) listed += (listed.empty() ? "" : ", ") + kind;
      return Error{ErrorCode::kNotFound, "model '" + name + "'",
                   "is neither a file nor a kind of cost model; the kinds are " + listed};
    }
    TS_ASSIGN_OR_RETURN(auto model, kinds.load(name));
    const auto parameters = parse_json<nlohmann::json>(model->card().parameters);
    TS_ASSIGN_OR_RETURN(out.trainer, kinds.make_trainer(model->card().kind, parameters));
    out.pretrained.push_back(std::move(model));
    return out;
  }
  TS_ASSIGN_OR_RETURN(out.trainer, kinds.make_trainer(name, nlohmann::json::object()));
  for (int seed = 0; seed < seeds; ++seed) {
    learn::TrainingControl control;
    control.seed = seed;
    control.split = split;
    control.threads = threads;
    control.stop = [&cancel] { return cancel.load(); };
    TS_ASSIGN_OR_RETURN(auto model, out.trainer->train(training, control));
    out.pretrained.push_back(std::move(model));
  }
  return out;
}

Status check_rounds(const learn::Store& store, const std::vector<int64_t>& records,
                    const LearningCurveOptions& options) {
  const std::vector<TaskRecords> tasks = curve_tasks(store, records);
  if (std::any_of(tasks.begin(), tasks.end(), [&](const auto& task) { return has_enough(task, options); }))
    return {};
  return Error{ErrorCode::kInvalidArgument, "",
               "no task has " + std::to_string(int64_t{options.rounds} * options.batch) +
                   " measured programs, as many as the rounds need; reduce --rounds or --batch"};
}

Result<LearningCurves> learning_curves(const learn::Store& store,
                                       const std::vector<const target::Device*>& devices,
                                       const std::vector<int64_t>& records,
                                       const std::vector<CurveModel>& models,
                                       const LearningCurveOptions& options,
                                       const LearningCurveProgress& progress,
                                       const std::atomic<bool>& cancel) {
  TS_RETURN_IF_ERROR(check_rounds(store, records, options));
  std::vector<TaskRecords> tasks = curve_tasks(store, records);
  LearningCurves out;
  out.left_out = static_cast<int64_t>(
      std::erase_if(tasks, [&](const TaskRecords& task) { return !has_enough(task, options); }));
  out.tasks = std::ssize(tasks);
  std::vector<std::optional<Result<std::vector<LearningCurve>>>> done(tasks.size());
  std::mutex mutex;
  int64_t finished = 0;
  for_each_index(options.threads, tasks.size(), [&](size_t t) {
    auto curves = curves_of(store, devices, tasks[t], models, options, cancel);
    const std::lock_guard lock(mutex);
    done[t] = std::move(curves);
    ++finished;
    if (progress) progress(finished, out.tasks);
  });
  for (auto& curves : done) {
    if (!curves->ok()) return curves->error();
    for (LearningCurve& curve : **curves) out.curves.push_back(std::move(curve));
  }
  return out;
}

CurveMean mean_of_curves(const std::vector<LearningCurve>& curves, size_t model, bool pretrained,
                         std::vector<double> LearningCurve::* value) {
  std::map<std::pair<std::string, std::string>, std::vector<const LearningCurve*>> of_task;
  std::map<uint64_t, std::vector<const LearningCurve*>> of_seed;
  size_t rounds = 0;
  for (const LearningCurve& curve : curves) {
    if (curve.model != model || curve.pretrained != pretrained) continue;
    of_task[{curve.device, curve.task}].push_back(&curve);
    of_seed[curve.seed].push_back(&curve);
    rounds = (curve.*value).size();
  }
  CurveMean out;
  for (size_t round = 0; round < rounds; ++round) {
    const auto means = [&](const auto& groups) {
      std::vector<double> all;
      for (const auto& [key, group] : groups) {
        double sum = 0;
        for (const LearningCurve* curve : group) sum += (curve->*value)[round];
        all.push_back(sum / group.size());
      }
      return all;
    };
    const std::vector<double> tasks = means(of_task), seeds = means(of_seed);
    out.mean.push_back(learn::mean_of(tasks));
    out.over_tasks.push_back(sample_deviation(tasks));
    out.over_seeds.push_back(sample_deviation(seeds));
  }
  return out;
}

}  // namespace tensorsmith::lab
