#include "learn/profile/two_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/statistics.h"
#include "feature/profile_schema.h"
#include "feature/summary_schema.h"
#include "learn/gbt/forest_file.h"
#include "learn/gbt/pack_sum.h"
#include "learn/latency/held_out.h"
#include "learn/latency/kinds.h"
#include "learn/latency/queries.h"
#include "learn/profile/static_row.h"

namespace tensorsmith::learn {
namespace {

constexpr size_t kCounters = feature::kCpuProfileColumns.size();
constexpr const char* kTwoStepKind = "two-step";

// Trees and the constant that is added to them.
struct Regression {
  double bias = 0;
  Forest forest;
};

// Features with one row per program.
struct Rows {
  size_t width = 0;
  std::vector<float> values;
  size_t count() const { return values.size() / width; }
  std::span<const float> row(size_t i) const { return {values.data() + i * width, width}; }
};

std::vector<double> predict_rows(const Regression& regression, const Rows& rows) {
  std::vector<float> values(rows.count());
  regression.forest.predict(rows.values, values);
  std::vector<double> out;
  for (const float value : values) out.push_back(regression.bias + value);
  return out;
}

void add_regression(ModelFile& file, const std::string& name, const Regression& regression) {
  const double bias[] = {regression.bias};
  file.add<double>(name + ".bias", {1}, bias);
  add_forest(file, name, regression.forest);
}

Result<Regression> read_regression(const ModelFile& file, const std::string& name, size_t width) {
  Regression out;
  TS_ASSIGN_OR_RETURN(const auto bias, file.values<double>(name + ".bias", {1}));
  if (!(std::abs(bias[0]) < 1e3))
    return Error{ErrorCode::kCorrupt, "", "the model's numbers are out of range"};
  out.bias = bias[0];
  TS_ASSIGN_OR_RETURN(out.forest, read_forest(file, name, width));
  return out;
}

// Returns the seconds that the operations take at the device's peak; labels are relative to it.
double compute_seconds(const feature::ProgramSummary& summary) {
  constexpr size_t kPlace = feature::place_of(feature::kCpuNestsColumns, "compute_seconds");
  return std::exp2(double{summary.columns[kPlace]});
}

class TwoStepModel final : public CostModel {
 public:
  ModelCard model_card;
  std::vector<Regression> counters;  // by column of the profile; empty for the baseline
  Regression latency;
  double log_sigma = 0;

  // Returns the inputs of the second step.
  Rows second(const Rows& first) const {
    if (counters.empty()) return first;
    Rows out{kCounters, std::vector<float>(first.count() * kCounters)};
    for (size_t c = 0; c < kCounters; ++c) {
      const std::vector<double> values = predict_rows(counters[c], first);
      for (size_t i = 0; i < values.size(); ++i)
        out.values[i * kCounters + c] = static_cast<float>(values[i]);
    }
    return out;
  }

  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override {
    QuerySummarizer summarizer;
    Rows first{static_width(), {}};
    std::vector<double> compute;
    for (const ProgramQuery& query : queries) {
      const auto summary = summarizer.summarize(query);
      TS_ASSIGN_OR_RETURN(const auto row, static_row(summary));
      first.values.insert(first.values.end(), row.begin(), row.end());
      compute.push_back(compute_seconds(summary));
    }
    std::vector<Prediction> out;
    if (queries.empty()) return out;
    const std::vector<double> logs = predict_rows(latency, second(first));
    UnseenEffects unseen(model_card);
    for (size_t i = 0; i < logs.size(); ++i) {
      out.push_back({compute[i] * std::exp(logs[i]), log_sigma});
      unseen.apply(*queries[i].device, out.back());
    }
    return out;
  }
  ModelInputs inputs() const override { return {.leaves = true, .trace = true}; }
  const ModelCard& card() const override { return model_card; }

  Status save(const std::string& path) const override {
    ModelFile file;
    file.card = model_card;
    const double sigma[] = {log_sigma};
    const uint8_t version[] = {static_cast<uint8_t>(feature::kProfileVersion),
                               static_cast<uint8_t>(counters.empty() ? 0 : 1)};
    file.add<double>("log_sigma", {1}, sigma);
    file.add<uint8_t>("version", {2}, version);
    for (size_t c = 0; c < counters.size(); ++c)
      add_regression(file, "counter." + feature::kCpuProfileColumns[c].name(), counters[c]);
    add_regression(file, "latency", latency);
    return write_model_file(file, path);
  }
};

Result<std::unique_ptr<CostModel>> read_two_step(ModelFile file) {
  auto model = std::make_unique<TwoStepModel>();
  TS_ASSIGN_OR_RETURN(const auto sigma, file.values<double>("log_sigma", {1}));
  TS_ASSIGN_OR_RETURN(const auto version, file.values<uint8_t>("version", {2}));
  if (!(sigma[0] >= 0 && sigma[0] < 1e3))
    return Error{ErrorCode::kCorrupt, "", "the model's numbers are out of range"};
  if (version[0] != feature::kProfileVersion)
    return Error{ErrorCode::kMismatch, "",
                 "was trained on another version of the counters; train the model again"};
  model->log_sigma = sigma[0];
  for (size_t c = 0; version[1] != 0 && c < kCounters; ++c) {
    TS_ASSIGN_OR_RETURN(
        Regression counter,
        read_regression(file, "counter." + feature::kCpuProfileColumns[c].name(), static_width()));
    model->counters.push_back(std::move(counter));
  }
  TS_ASSIGN_OR_RETURN(model->latency,
                      read_regression(file, "latency", version[1] != 0 ? kCounters : static_width()));
  model->model_card = std::move(file.card);
  return std::unique_ptr<CostModel>(std::move(model));
}

Result<Regression> fit(const Rows& rows, std::span<const double> labels, std::span<const size_t> programs,
                       int rounds, const TwoStepOptions& options) {
  Regression out;
  for (const size_t i : programs) out.bias += labels[i] / programs.size();
  PackSumData data;
  data.width = rows.width;
  data.column_name = [](size_t column) { return "column " + std::to_string(column); };
  for (const size_t i : programs) data.add(rows.row(i), static_cast<float>(labels[i] - out.bias), 1.0F);
  PackSumOptions trees;
  trees.max_depth = options.max_depth;
  trees.eta = options.eta;
  trees.rounds = rounds;
  trees.min_child_weight = 3;
  trees.seed = options.seed;
  TS_ASSIGN_OR_RETURN(PackSumFit fitted, fit_pack_sum(std::move(data), {}, trees));
  out.forest = std::move(fitted.forest);
  return out;
}

class Training {
 public:
  Training(const ProfiledPrograms& data, const TwoStepOptions& options) : data_(data), options_(options) {
    first_.width = static_width();
    constexpr size_t kPlace = feature::place_of(feature::kCpuNestsColumns, "compute_seconds");
    const size_t at = static_width() - feature::kCpuNestsColumns.size() + kPlace;
    for (const ProfiledProgram& program : data.programs) {
      first_.values.insert(first_.values.end(), program.summary.begin(), program.summary.end());
      labels_.push_back(std::log(program.seconds) - std::log(2.0) * program.summary[at]);
      all_.push_back(all_.size());
    }
    for (size_t c = 0; options.counters && c < kCounters; ++c) {
      counters_.emplace_back();
      for (const ProfiledProgram& program : data.programs) counters_.back().push_back(program.profile[c]);
    }
    assign_folds();
  }

  Result<std::unique_ptr<CostModel>> run() {
    auto model = std::make_unique<TwoStepModel>();
    for (const auto& counter : counters_) {
      TS_ASSIGN_OR_RETURN(Regression trees, fit(first_, counter, all_, options_.rounds, options_));
      model->counters.push_back(std::move(trees));
    }
    TS_ASSIGN_OR_RETURN(const Rows second, second_of_others());
    TS_ASSIGN_OR_RETURN(model->latency, fit(second, labels_, all_, options_.latency_rounds, options_));
    TS_ASSIGN_OR_RETURN(model->log_sigma, error_of_others(second));
    model->model_card = card();
    return std::unique_ptr<CostModel>(std::move(model));
  }

 private:
  // Assigns tasks to folds in turn; if there are too few tasks, assigns programs.
  void assign_folds() {
    std::set<size_t> tasks;
    for (const ProfiledProgram& program : data_.programs) tasks.insert(program.task);
    const bool by_task = tasks.size() >= static_cast<size_t>(options_.folds);
    std::map<size_t, size_t> number;
    for (const size_t task : tasks) number.emplace(task, number.size());
    for (size_t i = 0; i < data_.programs.size(); ++i)
      fold_.push_back((by_task ? number.at(data_.programs[i].task) : i) %
                      static_cast<size_t>(options_.folds));
  }
  std::pair<std::vector<size_t>, std::vector<size_t>> apart(size_t fold) const {
    std::pair<std::vector<size_t>, std::vector<size_t>> out;
    for (const size_t i : all_) (fold_[i] == fold ? out.second : out.first).push_back(i);
    return out;
  }

  // Returns the counters of each program as predicted by trees that have not seen its fold.
  Result<Rows> second_of_others() const {
    if (counters_.empty()) return first_;
    Rows out{kCounters, std::vector<float>(all_.size() * kCounters)};
    for (size_t fold = 0; fold < static_cast<size_t>(options_.folds); ++fold) {
      const auto [train, test] = apart(fold);
      Rows asked{first_.width, {}};
      for (const size_t i : test) {
        const auto row = first_.row(i);
        asked.values.insert(asked.values.end(), row.begin(), row.end());
      }
      for (size_t c = 0; c < kCounters && !test.empty(); ++c) {
        TS_ASSIGN_OR_RETURN(const Regression trees,
                            fit(first_, counters_[c], train, options_.rounds, options_));
        const std::vector<double> values = predict_rows(trees, asked);
        for (size_t i = 0; i < test.size(); ++i)
          out.values[test[i] * kCounters + c] = static_cast<float>(values[i]);
      }
    }
    return out;
  }

  Result<double> error_of_others(const Rows& second) const {
    std::vector<double> errors;
    for (size_t fold = 0; fold < static_cast<size_t>(options_.folds); ++fold) {
      const auto [train, test] = apart(fold);
      if (test.empty() || train.empty()) continue;
      TS_ASSIGN_OR_RETURN(const Regression trees,
                          fit(second, labels_, train, options_.latency_rounds, options_));
      Rows asked{second.width, {}};
      for (const size_t i : test) {
        const auto row = second.row(i);
        asked.values.insert(asked.values.end(), row.begin(), row.end());
      }
      const std::vector<double> values = predict_rows(trees, asked);
      for (size_t i = 0; i < test.size(); ++i) errors.push_back(std::abs(values[i] - labels_[test[i]]));
    }
    return errors.empty() ? 0 : quantile(std::move(errors), 0.6827);
  }

  ModelCard card() const {
    ModelCard card = card_of_profiles(data_, kTwoStepKind, options_.seed);
    card.command = options_.command;
    card.parameters = nlohmann::json{{"counters", options_.counters},
                                     {"rounds", options_.rounds},
                                     {"latency_rounds", options_.latency_rounds},
                                     {"max_depth", options_.max_depth},
                                     {"eta", options_.eta},
                                     {"folds", options_.folds}}
                          .dump();
    return card;
  }

  const ProfiledPrograms& data_;
  const TwoStepOptions& options_;
  Rows first_;
  std::vector<double> labels_;                 // log(seconds / compute_seconds)
  std::vector<std::vector<double>> counters_;  // by column, then by program
  std::vector<size_t> all_, fold_;
};

}  // namespace

Result<std::unique_ptr<CostModel>> train_two_step(const ProfiledPrograms& data,
                                                  const TwoStepOptions& options) {
  if (data.programs.empty())
    return Error{ErrorCode::kInvalidArgument, "profiles", "there are no profiled programs to train on"};
  if (data.programs.front().profile.size() != kCounters || data.programs.front().summary.empty())
    return Error{ErrorCode::kUnsupported, "model 'two-step'",
                 "can only be trained on profiles of Tensorsmith's own CPU programs, and these are other "
                 "programs; use --model profile"};
  return Training(data, options).run();
}

const CostModelKind& two_step_kind() {
  static const CostModelKind kind = {kTwoStepKind,
                                     [](const nlohmann::json&) -> Result<std::unique_ptr<CostModelTrainer>> {
                                       return needs_profiles(kTwoStepKind);
                                     },
                                     nullptr, read_two_step};
  return kind;
}

}  // namespace tensorsmith::learn
