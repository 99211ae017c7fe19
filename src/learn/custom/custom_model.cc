#include "learn/custom/custom_model.h"

#include <cmath>
#include <mutex>
#include <optional>
#include <utility>

#include "learn/latency/kinds.h"

namespace tensorsmith::learn {

namespace {

// Scores beyond this are no logarithms of seconds. They are compressed, which keeps their order, so that
// their exponential is finite.
constexpr double kPlainScore = 60;

double compressed_score(double score) {
  const double beyond = std::abs(score) - kPlainScore;
  return beyond <= 0 ? score : std::copysign(kPlainScore + std::log1p(beyond), score);
}

class CustomModel final : public CostModel {
 public:
  CustomModel(const CustomModelOptions& options, CustomFeatures features,
              std::unique_ptr<CustomScorer> scorer)
      : scorer_(std::move(scorer)),
        traits_(scorer_->traits()),
        learns_(traits_.learns && !options.frozen),
        place_("cost model " + options.name),
        card_(untrained_card(options.name, 0)),
        batches_(std::move(features), traits_.inputs) {}

  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override {
    if (queries.empty()) return std::vector<Prediction>();
    const std::lock_guard lock(mutex_);
    if (failed_) return *failed_;
    auto predicted = ask(queries);
    if (!predicted.ok()) return fail(predicted.error());
    return predicted;
  }

  Status update(std::span<const MeasuredProgram> programs) override {
    if (!learns_ || programs.empty()) return {};
    const std::lock_guard lock(mutex_);
    if (failed_) return *failed_;
    std::vector<ProgramQuery> queries;
    for (const MeasuredProgram& measured : programs) queries.push_back(measured.program);
    auto batch = batches_.make(queries);
    if (!batch.ok()) return fail(batch.error());
    for (const MeasuredProgram& measured : programs)
      batch->seconds.push_back(static_cast<float>(measured.seconds));
    const Status status = scorer_->update(std::move(*batch), batches_.tasks());
    if (!status.ok()) return fail(status.error());
    has_learned_ = true;
    return {};
  }

  ModelInputs inputs() const override { return model_inputs(traits_.inputs); }
  bool ranks_only() const override { return true; }
  bool ready() const override { return !learns_ || has_learned_; }
  bool learns() const override { return learns_; }
  bool takes_large_batches() const override { return true; }
  bool required() const override { return true; }
  const ModelCard& card() const override { return card_; }
  Status save(const std::string& path) const override {
    return Error{ErrorCode::kUnsupported, path, "a cost model of the user cannot be saved"};
  }

 private:
  Result<std::vector<Prediction>> ask(std::span<const ProgramQuery> queries) const {
    TS_ASSIGN_OR_RETURN(CustomBatch batch, batches_.make(queries));
    TS_ASSIGN_OR_RETURN(const auto scores, scorer_->predict(std::move(batch), batches_.tasks()));
    if (scores.size() != queries.size())
      return Error{ErrorCode::kMismatch, "",
                   "returned " + std::to_string(scores.size()) + " scores for " +
                       std::to_string(queries.size()) + " programs"};
    std::vector<Prediction> out(queries.size());
    for (size_t i = 0; i < out.size(); ++i) {
      const double score = scores[i];
      if (std::isnan(score) || score == INFINITY)
        return Error{ErrorCode::kMismatch, "",
                     std::string("returned ") + (std::isnan(score) ? "NaN" : "+infinity") + " as score " +
                         std::to_string(i + 1) + " of " + std::to_string(out.size())};
      out[i].seconds = std::exp(-(std::isfinite(score) ? compressed_score(score) : score));
      out[i].log_sigma = traits_.sigma;
    }
    return out;
  }

  // Keeps the error, since later ones only follow from it.
  Error fail(const Error& error) const {
    failed_ = Error{error.code, place_, error.message()};
    return *failed_;
  }

  std::unique_ptr<CustomScorer> scorer_;
  CustomTraits traits_;
  bool learns_, has_learned_ = false;
  std::string place_;
  ModelCard card_;
  mutable std::mutex mutex_;
  mutable CustomBatches batches_;  // numbers the tasks as they come
  mutable std::optional<Error> failed_;
};

}  // namespace

Result<std::unique_ptr<CostModel>> make_custom_model(const CustomModelOptions& options,
                                                     const target::Device& device,
                                                     const MakeCustomScorer& make_scorer) {
  CustomFeatures features(device.kind(), options.recorded);
  auto scorer = make_scorer({device, features.names()});
  if (!scorer.ok()) return Error{scorer.error().code, "cost model " + options.name, scorer.error().message()};
  return std::unique_ptr<CostModel>(
      std::make_unique<CustomModel>(options, std::move(features), std::move(*scorer)));
}

}  // namespace tensorsmith::learn
