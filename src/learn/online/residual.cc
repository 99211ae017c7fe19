#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include "learn/online/online.h"

namespace tensorsmith::learn {

namespace {

// All four constants were chosen, not fitted.
//
// Weight of the mean over all tasks in a task's mean residual, in measurements.
constexpr double kMeanPrior = 2;
// Residual log(measured / predicted) assumed for a failed program.
constexpr double kFailedResidual = 2;
// Weight of the prior's deviation, in measurements, and its value if the prior has none.
constexpr double kSigmaPrior = 16, kUnknownSigma = 0.5;

// Workload and device.
using ResidualTask = std::pair<const StoredWorkload*, const target::Device*>;
ResidualTask task_of(const ProgramQuery& query) { return {query.workload, query.device}; }

class ResidualModel final : public CostModel {
 public:
  ResidualModel(std::unique_ptr<CostModel> prior, const GbtOptions& options)
      : prior_(std::move(prior)),
        rows_(prior_->inputs().only_parts() ? estimate_rows() : per_store_rows()),
        options_(options),
        card_(prior_->card()) {}

  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override {
    TS_ASSIGN_OR_RETURN(std::vector<Prediction> out, prior_->predict(queries));
    if (!forest_) return out;
    const std::vector<double> sums = sum_rows(*forest_, rows_, queries);
    for (size_t i = 0; i < out.size(); ++i) {
      const double factor = std::exp(mean_of(task_of(queries[i])) + sums[i]);
      out[i].seconds = out[i].ranked() * factor;
      out[i].ranking_seconds = 0;
      out[i].mean_seconds *= factor;
      out[i].log_sigma = sigma(out[i].log_sigma);
      out[i].log_90 = out[i].log_95 = 0;
    }
    return out;
  }
  ModelInputs inputs() const override {
    ModelInputs inputs = prior_->inputs();
    if (!inputs.only_parts()) inputs.rows = true;
    return inputs;
  }
  bool ranks_only() const override { return prior_->ranks_only(); }
  bool corrects_estimate() const override { return prior_->corrects_estimate(); }
  bool ready() const override { return prior_->ready(); }
  bool learns() const override { return true; }
  const ModelCard& card() const override { return card_; }
  Status save(const std::string& path) const override {
    return Error{ErrorCode::kUnsupported, path, "a model that learns during a search cannot be saved"};
  }

  Status update(std::span<const MeasuredProgram> programs) override {
    TS_RETURN_IF_ERROR(look_at_new(programs));
    // Programs that the prior predicts cannot run have no finite residual. They are not learned
    // from, and stay predicted as impossible.
    std::vector<MeasuredProgram> learned;
    for (const MeasuredProgram& measured : programs)
      if (std::isfinite(log_prior(measured))) learned.push_back(measured);
    if (learned.size() < kMinTrainingPrograms) return {};
    std::vector<float> labels;
    std::map<ResidualTask, Mean> means;
    Mean all;
    for (const MeasuredProgram& measured : learned) {
      if (!std::isfinite(measured.seconds)) continue;
      const double r = residual(measured);
      means[task_of(measured.program)].add(r, measured.weight);
      all.add(r, measured.weight);
    }
    const double base = all.count > 0 ? all.sum / all.count : 0;
    std::map<ResidualTask, double> task_means;
    for (const auto& [task, mean] : means)
      task_means[task] = (mean.sum + kMeanPrior * base) / (mean.count + kMeanPrior);
    for (const MeasuredProgram& measured : learned) {
      const auto at = task_means.find(task_of(measured.program));
      const double mean = at != task_means.end() ? at->second : base;
      labels.push_back(
          static_cast<float>(std::isfinite(measured.seconds) ? residual(measured) - mean : kFailedResidual));
    }
    TS_ASSIGN_OR_RETURN(PackSumFit fit, fit_gbt(learned, rows_, labels, options_));
    forest_ = std::move(fit.forest);
    task_means_ = std::move(task_means);
    base_ = base;
    return {};
  }

 private:
  struct Mean {
    double sum = 0, count = 0;
    void add(double x, double weight) {
      sum += weight * x;
      count += weight;
    }
  };

  // Returns an address that a program keeps from call to call.
  static const void* identity(const ProgramQuery& query) {
    return query.parts != nullptr ? static_cast<const void*>(query.parts) : query.rows;
  }
  double mean_of(const ResidualTask& task) const {
    const auto at = task_means_.find(task);
    return at != task_means_.end() ? at->second : base_;
  }
  double residual(const MeasuredProgram& measured) const {
    return std::log(measured.seconds) - log_prior(measured);
  }
  double log_prior(const MeasuredProgram& measured) const {
    return prior_log_seconds_.at(identity(measured.program));
  }
  double sigma(double of_prior) const {
    const double own = of_prior > 0 && !ranks_only() ? of_prior : kUnknownSigma;
    return std::sqrt((kSigmaPrior * own * own + errors_.sum) / (kSigmaPrior + errors_.count));
  }

  // Stores the prior's predictions for new programs, and adds the errors of this model on them to
  // errors_.
  Status look_at_new(std::span<const MeasuredProgram> programs) {
    std::vector<ProgramQuery> queries;
    std::vector<double> seconds, weights;
    for (const MeasuredProgram& measured : programs) {
      if (prior_log_seconds_.count(identity(measured.program)) > 0) continue;
      queries.push_back(measured.program);
      seconds.push_back(measured.seconds);
      weights.push_back(measured.weight);
    }
    if (queries.empty()) return {};
    TS_ASSIGN_OR_RETURN(const auto predicted, prior_->predict(queries));
    const std::vector<double> sums =
        forest_ ? sum_rows(*forest_, rows_, queries) : std::vector<double>(queries.size(), 0);
    for (size_t i = 0; i < queries.size(); ++i) {
      const double log_prior = std::log(predicted[i].ranked());
      prior_log_seconds_[identity(queries[i])] = log_prior;
      if (!forest_ || !std::isfinite(seconds[i]) || !std::isfinite(log_prior)) continue;
      const double error = std::log(seconds[i]) - (log_prior + mean_of(task_of(queries[i])) + sums[i]);
      errors_.add(error * error, weights[i]);
    }
    return {};
  }

  std::unique_ptr<CostModel> prior_;
  const ForestRows& rows_;
  GbtOptions options_;
  ModelCard card_;
  std::optional<Forest> forest_;
  std::map<ResidualTask, double> task_means_;
  double base_ = 0;                                            // mean residual of tasks without measurements
  std::unordered_map<const void*, double> prior_log_seconds_;  // by identity()
  Mean errors_;                                                // of squared errors
};

}  // namespace

std::unique_ptr<CostModel> make_residual_model(std::unique_ptr<CostModel> prior, const GbtOptions& options) {
  return std::make_unique<ResidualModel>(std::move(prior), options);
}

}  // namespace tensorsmith::learn
