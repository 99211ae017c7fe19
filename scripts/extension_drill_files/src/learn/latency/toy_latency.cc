// Predicts the mean of the training data's seconds for every program.
#include <nlohmann/json.hpp>

#include "learn/latency/evaluation.h"
#include "learn/latency/kinds.h"
#include "learn/latency/parameters.h"

namespace tensorsmith::learn {

namespace {

class ToyLatency final : public CostModel {
 public:
  ToyLatency(ModelCard card, double seconds) : card_(std::move(card)), seconds_(seconds) {}

  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override {
    return std::vector<Prediction>(queries.size(), Prediction{seconds_});
  }
  const ModelCard& card() const override { return card_; }
  Status save(const std::string& path) const override {
    ModelFile file;
    file.card = card_;
    file.add<double>("seconds", {1}, std::span(&seconds_, 1));
    return write_model_file(file, path);
  }

 private:
  ModelCard card_;
  double seconds_;
};

class ToyTrainer final : public CostModelTrainer {
 public:
  Result<std::unique_ptr<CostModel>> train(const TrainingData& data,
                                           const TrainingControl& control) const override {
    double sum = 0, programs = 0;
    for (const int64_t i : data.train) {
      const Store::Entry entry = data.store->entry(i);
      if (entry.failed()) continue;
      sum += entry.mean_seconds;
      ++programs;
    }
    if (programs == 0) return Error{ErrorCode::kInvalidArgument, "training data", "has no program that ran"};
    const double mean = sum / programs;
    ModelCard card = make_card("toy", data, control, nlohmann::json::object());
    TS_ASSIGN_OR_RETURN(card.metrics, validation_metrics(ToyLatency(card, mean), data));
    return std::unique_ptr<CostModel>(std::make_unique<ToyLatency>(std::move(card), mean));
  }
  Result<std::unique_ptr<CostModel>> fine_tune(const CostModel&, const TrainingData& data,
                                               const TrainingControl& control) const override {
    return train(data, control);
  }
};

}  // namespace

const CostModelKind& toy_kind() {
  static const CostModelKind kind = {
      "toy",
      [](const nlohmann::json& given) -> Result<std::unique_ptr<CostModelTrainer>> {
        TS_ASSIGN_OR_RETURN(const nlohmann::json none, Parameters(given).finish());
        return std::unique_ptr<CostModelTrainer>(std::make_unique<ToyTrainer>());
      },
      [](const UntrainedOptions& options) -> std::unique_ptr<CostModel> {
        return std::make_unique<ToyLatency>(untrained_card("toy", options.seed), 1);
      },
      [](ModelFile file) -> Result<std::unique_ptr<CostModel>> {
        TS_ASSIGN_OR_RETURN(const std::vector<double> seconds, file.values<double>("seconds", {1}));
        return std::unique_ptr<CostModel>(std::make_unique<ToyLatency>(std::move(file.card), seconds[0]));
      }};
  return kind;
}

}  // namespace tensorsmith::learn
