// Boosted trees that correct the design space's estimate. They read the parts of the estimate, so a program
// is neither scheduled nor lowered before it is scored. The label of a program is log(measured / estimated
// seconds), relative to the median of its task: the trees learn the order of a task's programs. Several
// members are trained on different samples of the programs; their mean is the prediction.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/statistics.h"
#include "learn/correction/estimate_columns.h"
#include "learn/gbt/forest_file.h"
#include "learn/gbt/pack_sum.h"
#include "learn/latency/evaluation.h"
#include "learn/latency/held_out.h"
#include "learn/latency/kinds.h"
#include "learn/latency/parameters.h"
#include "learn/latency/queries.h"
#include "record/disturbance.h"
#include "space/estimate/constants.h"

namespace tensorsmith::learn {

namespace {

using Json = nlohmann::json;

// Programs that are slow count less: weight = kLeastWeight + (fastest seconds of the task / seconds)^2,
// divided by the square root of the task's number of programs. These constants are chosen.
constexpr double kLeastWeight = 0.1;
// Labels beyond this are cut off: the trees shall not explain outliers.
constexpr double kMostError = 2;

// Name of the tensor that says which estimate a model corrects.
constexpr const char* kEstimateText = "estimate.json";

// Returns the columns and the constants of the estimate that this program makes, as JSON.
std::string corrected_estimate() {
  Json constants = Json::object();
  for (const space::ConstantInfo& info : space::constant_table())
    constants[info.name] = space::default_constants().*info.member;
  return Json{{"columns", estimate_schema().names()}, {"constants", constants}}.dump();
}

struct CorrectionOptions {
  int members = 4;
  PackSumOptions fit;

  CorrectionOptions() {
    fit.max_depth = 6;
    fit.gamma = 0;
    fit.min_child_weight = 2;
    fit.eta = 0.08;
    fit.lambda = 3;
    fit.row_share = 0.7;
    fit.node_column_share = 0.5;
    fit.rounds = 100;
  }
  Result<Json> read(const Json& given) {
    Parameters parameters(given);
    parameters.integer("members", members, 1, 64);
    parameters.integer("rounds", fit.rounds, 1, 10'000);
    parameters.integer("max_depth", fit.max_depth, 1, 15);
    parameters.real("eta", fit.eta, 1e-4, 1);
    parameters.real("min_child_weight", fit.min_child_weight, 0, 1e6);
    parameters.real("lambda", fit.lambda, 0, 1e6);
    parameters.real("row_share", fit.row_share, 0.01, 1);
    return parameters.finish();
  }
};

class CorrectionModel final : public CostModel {
 public:
  ModelCard model_card;
  double log_shift = 0;  // median over the tasks of log(measured / estimated seconds)
  // Deviations of errors within a task: for workloads, and for processors, that the fit has not seen. 0: not known.
  double log_sigma = 0, log_sigma_unseen = 0;
  std::vector<Forest> members;

  // Returns the mean of the members for each row, and their standard deviation.
  void correct(std::span<const float> rows, std::span<float> mean, std::span<float> deviation) const {
    std::vector<float> one(mean.size()), squares(mean.size(), 0);
    std::fill(mean.begin(), mean.end(), 0.0F);
    for (const Forest& member : members) {
      member.predict(rows, one);
      for (size_t i = 0; i < one.size(); ++i) {
        mean[i] += one[i];
        squares[i] += one[i] * one[i];
      }
    }
    const auto count = static_cast<float>(members.size());
    for (size_t i = 0; i < mean.size(); ++i) {
      mean[i] /= count;
      deviation[i] = std::sqrt(std::max(0.0F, squares[i] / count - mean[i] * mean[i]));
    }
  }

  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override {
    std::vector<float> rows;
    rows.reserve(queries.size() * kEstimateColumns);
    for (size_t i = 0; i < queries.size(); ++i) {
      if (queries[i].parts == nullptr)
        return Error{
            ErrorCode::kInvalidArgument, "query " + std::to_string(i),
            "the model corrects estimates of the design space, and the program's decisions are not known"};
      const auto columns = estimate_columns(*queries[i].parts, *queries[i].device);
      rows.insert(rows.end(), columns.begin(), columns.end());
    }
    std::vector<float> mean(queries.size()), deviation(queries.size());
    correct(rows, mean, deviation);
    std::vector<Prediction> out(queries.size());
    const target::Device* device = nullptr;
    Unseen unseen;
    for (size_t i = 0; i < out.size(); ++i) {
      if (queries[i].device != device) {
        device = queries[i].device;
        unseen = unseen_by(model_card, *device);
      }
      out[i].seconds = queries[i].parts->seconds * std::exp(log_shift + static_cast<double>(mean[i]));
      out[i].unseen = unseen;
      out[i].log_sigma = unseen.any() ? log_sigma_unseen : log_sigma;
      out[i].disagreement = static_cast<double>(deviation[i]);
    }
    return out;
  }
  ModelInputs inputs() const override { return {.parts = true}; }
  bool corrects_estimate() const override { return true; }
  const ModelCard& card() const override { return model_card; }

  Status save(const std::string& path) const override {
    ModelFile file;
    file.card = model_card;
    const double numbers[] = {log_shift, log_sigma, log_sigma_unseen, static_cast<double>(members.size())};
    file.add<double>("shift_sigmas_members", {4}, numbers);
    const std::string text = corrected_estimate();
    const std::vector<uint8_t> bytes(text.begin(), text.end());
    file.add<uint8_t>(kEstimateText, {std::ssize(bytes)}, bytes);
    for (size_t m = 0; m < members.size(); ++m) add_forest(file, "member" + std::to_string(m), members[m]);
    return write_model_file(file, path);
  }
};

Result<std::unique_ptr<CostModel>> read_correction(ModelFile file) {
  TS_ASSIGN_OR_RETURN(const auto text, file.values<uint8_t>(kEstimateText, {-1}));
  if (std::string(text.begin(), text.end()) != corrected_estimate())
    return Error{ErrorCode::kMismatch, "", "was trained to correct another estimate; train the model again"};
  auto model = std::make_unique<CorrectionModel>();
  TS_ASSIGN_OR_RETURN(const auto numbers, file.values<double>("shift_sigmas_members", {4}));
  if (!(std::abs(numbers[0]) < 1e3) || !(numbers[1] >= 0 && numbers[1] < 1e3) ||
      !(numbers[2] >= 0 && numbers[2] < 1e3) || !(numbers[3] >= 1 && numbers[3] <= 64))
    return Error{ErrorCode::kCorrupt, "", "the model's numbers are out of range"};
  model->log_shift = numbers[0];
  model->log_sigma = numbers[1];
  model->log_sigma_unseen = numbers[2];
  for (int m = 0; m < static_cast<int>(numbers[3]); ++m) {
    TS_ASSIGN_OR_RETURN(Forest forest, read_forest(file, "member" + std::to_string(m), kEstimateColumns));
    model->members.push_back(std::move(forest));
  }
  model->model_card = std::move(file.card);
  return std::unique_ptr<CostModel>(std::move(model));
}

// --- training

// The measured programs of a part of a store whose decisions are known.
struct Programs {
  std::vector<float> rows;
  std::vector<double> errors;  // log(measured / estimated seconds)
  std::vector<float> weights;
  std::vector<int64_t> records;               // of each program: its number in the store
  std::vector<size_t> workloads, processors;  // of each program
  std::vector<size_t> tasks;                  // of each program: index in `medians`
  std::vector<double> medians;                // of each task's errors
  size_t size() const { return errors.size(); }
  std::span<const float> row(size_t i) const {
    return std::span(rows).subspan(i * kEstimateColumns, kEstimateColumns);
  }
  float label(size_t i) const {
    return static_cast<float>(std::clamp(errors[i] - medians[tasks[i]], -kMostError, kMostError));
  }
};

Result<Programs> gather(const TrainingData& data, std::span<const int64_t> records) {
  Programs out;
  std::map<std::pair<uint32_t, uint32_t>, size_t> tasks;
  std::vector<double> seconds;
  std::vector<std::vector<double>> of_task;
  std::vector<double> fastest;
  std::map<std::string, size_t> processors;
  RecordedEstimates estimates(*data.store, data.devices);
  for (const int64_t i : records) {
    const Store::Entry entry = data.store->entry(i);
    if (entry.failed() || data.devices[entry.device]->kind() != target::DeviceKind::kCpu) continue;
    TS_ASSIGN_OR_RETURN(const auto parts, estimates.of(i));
    if (!parts || !(parts->seconds > 0)) continue;
    const auto columns = estimate_columns(*parts, *data.devices[entry.device]);
    out.rows.insert(out.rows.end(), columns.begin(), columns.end());
    const auto [task, added] = tasks.try_emplace({entry.workload, entry.device}, of_task.size());
    if (added) {
      of_task.emplace_back();
      fastest.push_back(entry.mean_seconds);
    }
    out.errors.push_back(std::log(entry.mean_seconds / parts->seconds));
    out.weights.push_back(static_cast<float>(record::trust(entry.disturbance)));
    out.tasks.push_back(task->second);
    out.records.push_back(i);
    out.workloads.push_back(entry.workload);
    out.processors.push_back(
        processors.try_emplace(data.devices[entry.device]->processor, processors.size()).first->second);
    of_task[task->second].push_back(out.errors.back());
    fastest[task->second] = std::min(fastest[task->second], entry.mean_seconds);
    seconds.push_back(entry.mean_seconds);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const double speed = fastest[out.tasks[i]] / seconds[i];
    const auto programs = static_cast<double>(of_task[out.tasks[i]].size());
    out.weights[i] *= static_cast<float>((kLeastWeight + speed * speed) / std::sqrt(programs));
  }
  for (std::vector<double>& errors : of_task) out.medians.push_back(quantile(errors, 0.5));
  return out;
}

PackSumData pack(const Programs& programs, std::span<const size_t> chosen) {
  PackSumData out;
  out.width = kEstimateColumns;
  out.column_name = [](size_t column) { return kEstimateSchema[column].name(); };
  for (const size_t i : chosen) out.add(programs.row(i), programs.label(i), programs.weights[i]);
  return out;
}

class CorrectionTrainer final : public CostModelTrainer {
 public:
  CorrectionTrainer(CorrectionOptions options, Json parameters)
      : options_(std::move(options)), parameters_(std::move(parameters)) {}

  Result<std::unique_ptr<CostModel>> train(const TrainingData& data,
                                           const TrainingControl& control) const override {
    TS_ASSIGN_OR_RETURN(const Programs programs, gather(data, data.train));
    if (programs.size() == 0)
      return Error{
          ErrorCode::kInvalidArgument, "",
          "no training record is of a CPU program whose decisions are known; this kind of model learns "
          "from databases of our own searches"};
    auto model = std::make_unique<CorrectionModel>();
    std::vector<double> medians = programs.medians;
    model->log_shift = quantile(medians, 0.5);
    constexpr size_t kFolds = 4;
    std::vector<size_t> folds;
    // A workload is in one fold on all devices: its programs on one device tell much of those on another.
    for (const size_t workload : programs.workloads) folds.push_back(workload % kFolds);
    TS_ASSIGN_OR_RETURN(model->log_sigma, sigma_of_unseen(programs, folds, control));
    TS_ASSIGN_OR_RETURN(model->log_sigma_unseen, sigma_of_unseen(programs, programs.processors, control));
    std::vector<size_t> all(programs.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    TS_ASSIGN_OR_RETURN(model->members, fit_members(programs, all, control, control.progress));
    model->model_card = make_card("correction", data, control, parameters_);
    // The model predicts nothing for records without decisions, such as those of other compilers.
    TrainingData known = data;
    TS_ASSIGN_OR_RETURN(const Programs validation, gather(data, data.validation));
    known.validation = validation.records;
    TS_ASSIGN_OR_RETURN(model->model_card.metrics, validation_metrics(*model, known));
    return std::unique_ptr<CostModel>(std::move(model));
  }
  Result<std::unique_ptr<CostModel>> fine_tune(const CostModel& /*model*/, const TrainingData& /*data*/,
                                               const TrainingControl& /*control*/) const override {
    return Error{ErrorCode::kUnsupported, "",
                 "a model of kind 'correction' is trained in seconds: train it again with all records"};
  }

 private:
  Result<std::vector<Forest>> fit_members(
      const Programs& programs, std::span<const size_t> chosen, const TrainingControl& control,
      const std::function<void(const TrainingProgress&)>& progress) const {
    std::vector<Forest> out;
    for (int m = 0; m < options_.members; ++m) {
      PackSumOptions fit = options_.fit;
      fit.threads = control.threads;
      fit.seed = control.seed + static_cast<uint64_t>(m);
      fit.stop = control.stop;
      if (progress)
        fit.progress = [&](int rounds, double loss, double) {
          progress({options_.fit.rounds * m + rounds, options_.fit.rounds * options_.members, loss, 0, 0,
                    "member-" + std::to_string(m + 1), rounds});
        };
      TS_ASSIGN_OR_RETURN(PackSumFit fitted, fit_pack_sum(pack(programs, chosen), PackSumData{}, fit));
      out.push_back(std::move(fitted.forest));
    }
    return out;
  }

  // Returns the deviation of errors within tasks, where each group of programs is predicted by members that
  // are trained on the other groups. 0 if there is only one group.
  Result<double> sigma_of_unseen(const Programs& programs, std::span<const size_t> group_of,
                                 const TrainingControl& control) const {
    const std::set<size_t> groups(group_of.begin(), group_of.end());
    std::vector<double> errors;
    for (const size_t group : groups) {
      std::vector<size_t> others, own;
      for (size_t i = 0; i < programs.size(); ++i) (group_of[i] == group ? own : others).push_back(i);
      if (others.empty()) continue;
      CorrectionModel part;
      TS_ASSIGN_OR_RETURN(part.members, fit_members(programs, others, control, nullptr));
      std::vector<float> rows, mean(own.size()), deviation(own.size());
      for (const size_t i : own) rows.insert(rows.end(), programs.row(i).begin(), programs.row(i).end());
      part.correct(rows, mean, deviation);
      for (size_t k = 0; k < own.size(); ++k) errors.push_back(std::abs(programs.label(own[k]) - mean[k]));
    }
    return errors.empty() ? 0.0 : quantile(errors, 0.6827);
  }

  CorrectionOptions options_;
  Json parameters_;
};

}  // namespace

const CostModelKind& correction_kind() {
  static const CostModelKind kind = {
      "correction",
      [](const Json& given) -> Result<std::unique_ptr<CostModelTrainer>> {
        CorrectionOptions options;
        TS_ASSIGN_OR_RETURN(Json all, options.read(given));
        return std::unique_ptr<CostModelTrainer>(
            std::make_unique<CorrectionTrainer>(std::move(options), std::move(all)));
      },
      nullptr, read_correction};
  return kind;
}

}  // namespace tensorsmith::learn
