// Predicts seconds from a hash of the features and a seed: a baseline that every model must beat.
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "learn/latency/evaluation.h"
#include "learn/latency/kinds.h"
#include "learn/latency/parameters.h"

namespace tensorsmith::learn {

namespace {

class RandomLatency final : public CostModel {
 public:
  explicit RandomLatency(ModelCard card) : card_(std::move(card)) {}

  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override {
    std::vector<Prediction> out;
    out.reserve(queries.size());
    for (const ProgramQuery& query : queries) {
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
  const ModelCard& card() const override { return card_; }
  Status save(const std::string& path) const override {
    ModelFile file;
    file.card = card_;
    return write_model_file(file, path);
  }

 private:
  ModelCard card_;
};

class RandomTrainer final : public CostModelTrainer {
 public:
  Result<std::unique_ptr<CostModel>> train(const TrainingData& data,
                                           const TrainingControl& control) const override {
    ModelCard card = make_card("random", data, control, nlohmann::json::object());
    TS_ASSIGN_OR_RETURN(card.metrics, validation_metrics(RandomLatency(card), data));
    return std::unique_ptr<CostModel>(std::make_unique<RandomLatency>(std::move(card)));
  }
  Result<std::unique_ptr<CostModel>> fine_tune(const CostModel&, const TrainingData& data,
                                               const TrainingControl& control) const override {
    return train(data, control);
  }
};

}  // namespace

const CostModelKind& random_kind() {
  static const CostModelKind kind = {
      "random",
      [](const nlohmann::json& given) -> Result<std::unique_ptr<CostModelTrainer>> {
        TS_ASSIGN_OR_RETURN(const nlohmann::json none, Parameters(given).finish());
        return std::unique_ptr<CostModelTrainer>(std::make_unique<RandomTrainer>());
      },
      [](const UntrainedOptions& options) -> std::unique_ptr<CostModel> {
        return std::make_unique<RandomLatency>(untrained_card("random", options.seed));
      },
      [](ModelFile file) -> Result<std::unique_ptr<CostModel>> {
        return std::unique_ptr<CostModel>(std::make_unique<RandomLatency>(std::move(file.card)));
      }};
  return kind;
}

}  // namespace tensorsmith::learn
