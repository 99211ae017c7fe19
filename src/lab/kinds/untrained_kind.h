// Kinds of cost models that have nothing to learn: training only measures how good they are.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "learn/latency/evaluation.h"
#include "learn/latency/kinds.h"
#include "learn/latency/parameters.h"

namespace tensorsmith::lab {

// A model whose file holds only its card. Its predictions only rank programs.
class UntrainedModel : public learn::CostModel {
 public:
  explicit UntrainedModel(learn::ModelCard card) : card_(std::move(card)) {}

  Result<std::vector<learn::Prediction>> predict(std::span<const learn::ProgramQuery> queries) const final {
    std::vector<learn::Prediction> out;
    out.reserve(queries.size());
    for (const learn::ProgramQuery& query : queries) out.push_back({seconds_of(query)});
    return out;
  }
  bool ranks_only() const final { return true; }
  const learn::ModelCard& card() const final { return card_; }
  Status save(const std::string& path) const final {
    learn::ModelFile file;
    file.card = card_;
    return learn::write_model_file(file, path);
  }

 private:
  virtual double seconds_of(const learn::ProgramQuery& query) const = 0;

  learn::ModelCard card_;
};

// `Model` is an UntrainedModel with a constructor from its card and the name of its kind, kKind.
template <class Model>
class UntrainedTrainer final : public learn::CostModelTrainer {
 public:
  Result<std::unique_ptr<learn::CostModel>> train(const learn::TrainingData& data,
                                                  const learn::TrainingControl& control) const override {
    learn::ModelCard card = learn::make_card(Model::kKind, data, control, nlohmann::json::object());
    TS_ASSIGN_OR_RETURN(card.metrics, learn::validation_metrics(Model(card), data));
    return std::unique_ptr<learn::CostModel>(std::make_unique<Model>(std::move(card)));
  }
  Result<std::unique_ptr<learn::CostModel>> fine_tune(const learn::CostModel&,
                                                      const learn::TrainingData& data,
                                                      const learn::TrainingControl& control) const override {
    return train(data, control);
  }
};

template <class Model>
const learn::CostModelKind& untrained_kind() {
  static const learn::CostModelKind kind = {
      Model::kKind,
      [](const nlohmann::json& given) -> Result<std::unique_ptr<learn::CostModelTrainer>> {
        TS_ASSIGN_OR_RETURN(const nlohmann::json none, learn::Parameters(given).finish());
        return std::unique_ptr<learn::CostModelTrainer>(std::make_unique<UntrainedTrainer<Model>>());
      },
      [](const learn::UntrainedOptions& options) -> std::unique_ptr<learn::CostModel> {
        return std::make_unique<Model>(learn::untrained_card(Model::kKind, options.seed));
      },
      [](learn::ModelFile file) -> Result<std::unique_ptr<learn::CostModel>> {
        return std::unique_ptr<learn::CostModel>(std::make_unique<Model>(std::move(file.card)));
      }};
  return kind;
}

}  // namespace tensorsmith::lab
