// Seconds by hash of the features and a seed: what every model must beat.
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "learn/latency/evaluation.h"
#include "learn/latency/kinds.h"
#include "learn/latency/parameters.h"

namespace tensorsmith::learn {

namespace {

class RandomLatency final : public LatencyModel {
 public:
  explicit RandomLatency(ModelCard card) : card_(std::move(card)) {}

  Result<std::vector<LatencyPrediction>> predict(std::span<const LatencyQuery> queries) const override {
    std::vector<LatencyPrediction> out;
    out.reserve(queries.size());
    for (const LatencyQuery& query : queries) {
      Hasher hasher;
      hasher.add(card_.seed).add(query.device->name);
      for (const float value : query.leaves->vectors.values)
        hasher.add(static_cast<uint64_t>(std::bit_cast<uint32_t>(value)));
      const double uniform = static_cast<double>(hasher.digest64() >> 11) * 0x1p-53;
      // Over the range that tensor programs have: a microsecond to a second.
      out.push_back({1e-6 * std::pow(1e6, uniform), 0});
    }
    return out;
  }
  bool ranks_only() const override { return true; }
  const ModelCard& card() const override { return card_; }
  Status save(const std::string& path) const override { return write_model_file({card_, {}}, path); }

 private:
  ModelCard card_;
};

class RandomTrainer final : public LatencyTrainer {
 public:
  Result<std::unique_ptr<LatencyModel>> train(const LatencyData& data,
                                              const TrainingControl& control) const override {
    ModelCard card = make_card("random", data, control, nlohmann::json::object());
    TS_ASSIGN_OR_RETURN(card.metrics, validation_metrics(RandomLatency(card), data));
    return std::unique_ptr<LatencyModel>(std::make_unique<RandomLatency>(std::move(card)));
  }
  Result<std::unique_ptr<LatencyModel>> fine_tune(const LatencyModel&, const LatencyData& data,
                                                  const TrainingControl& control) const override {
    return train(data, control);
  }
};

}  // namespace

const LatencyKind& random_kind() {
  static const LatencyKind kind = {
      "random",
      [](const nlohmann::json& given) -> Result<std::unique_ptr<LatencyTrainer>> {
        TS_ASSIGN_OR_RETURN(const nlohmann::json none, Parameters(given).finish());
        return std::unique_ptr<LatencyTrainer>(std::make_unique<RandomTrainer>());
      },
      [](ModelFile file) -> Result<std::unique_ptr<LatencyModel>> {
        return std::unique_ptr<LatencyModel>(std::make_unique<RandomLatency>(std::move(file.card)));
      }};
  return kind;
}

}  // namespace tensorsmith::learn
