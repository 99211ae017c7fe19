// Predicts seconds from a hash of the features and a seed: a baseline that every model must beat.
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "lab/kinds/kinds.h"
#include "learn/latency/evaluation.h"
#include "learn/latency/parameters.h"

namespace tensorsmith::lab {

namespace {

class RandomLatency final : public learn::CostModel {
 public:
  explicit RandomLatency(learn::ModelCard card) : card_(std::move(card)) {}

  Result<std::vector<learn::Prediction>> predict(
      std::span<const learn::ProgramQuery> queries) const override {
    std::vector<learn::Prediction> out;
    out.reserve(queries.size());
    for (const learn::ProgramQuery& query : queries) {
      Hasher hasher;
      hasher.add(card_.seed).add(query.device->name);
      for (const float value : query.leaves->vectors.values)
        hasher.add(static_cast<uint64_t>(std::bit_cast<uint32_t>(value)));
      const double uniform = static_cast<double>(hasher.digest64() >> 11) * 0x1p-53;
      // Spread over the usual range of tensor programs: from a microsecond to a second.
      out.push_back({1e-6 * std::pow(1e6, uniform), 0});
    }
    return out;
  }
  bool ranks_only() const override { return true; }
  const learn::ModelCard& card() const override { return card_; }
  Status save(const std::string& path) const override {
    learn::ModelFile file;
    file.card = card_;
    return learn::write_model_file(file, path);
  }

 private:
  learn::ModelCard card_;
};

class RandomTrainer final : public learn::CostModelTrainer {
 public:
  Result<std::unique_ptr<learn::CostModel>> train(const learn::TrainingData& data,
                                                  const learn::TrainingControl& control) const override {
    learn::ModelCard card = learn::make_card("random", data, control, nlohmann::json::object());
    TS_ASSIGN_OR_RETURN(card.metrics, learn::validation_metrics(RandomLatency(card), data));
    return std::unique_ptr<learn::CostModel>(std::make_unique<RandomLatency>(std::move(card)));
  }
  Result<std::unique_ptr<learn::CostModel>> fine_tune(const learn::CostModel&,
                                                      const learn::TrainingData& data,
                                                      const learn::TrainingControl& control) const override {
    return train(data, control);
  }
};

}  // namespace

const learn::CostModelKind& random_kind() {
  static const learn::CostModelKind kind = {
      "random",
      [](const nlohmann::json& given) -> Result<std::unique_ptr<learn::CostModelTrainer>> {
        TS_ASSIGN_OR_RETURN(const nlohmann::json none, learn::Parameters(given).finish());
        return std::unique_ptr<learn::CostModelTrainer>(std::make_unique<RandomTrainer>());
      },
      [](const learn::UntrainedOptions& options) -> std::unique_ptr<learn::CostModel> {
        return std::make_unique<RandomLatency>(learn::untrained_card("random", options.seed));
      },
      [](learn::ModelFile file) -> Result<std::unique_ptr<learn::CostModel>> {
        return std::unique_ptr<learn::CostModel>(std::make_unique<RandomLatency>(std::move(file.card)));
      }};
  return kind;
}

}  // namespace tensorsmith::lab
