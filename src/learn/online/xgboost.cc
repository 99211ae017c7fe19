#include <cmath>
#include <limits>
#include <optional>

#include "learn/latency/kinds.h"
#include "learn/online/online.h"

namespace tensorsmith::learn {

namespace {

// Lower limit of the logarithm of a relative speed. The trees' sum may be 0 or negative, so below
// this speed the logarithm is continued by its tangent, which preserves the order.
constexpr double kLeastSpeed = 0.02;

double log_speed(double speed) {
  if (speed >= kLeastSpeed) return std::log(speed);
  return std::log(kLeastSpeed) + (speed - kLeastSpeed) / kLeastSpeed;
}

class OnlineXgboost final : public CostModel {
 public:
  explicit OnlineXgboost(const GbtOptions& options)
      : options_(options), card_(untrained_card("xgboost", options.seed)) {}

  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override {
    std::vector<Prediction> out(queries.size());
    if (!forest_) {
      for (Prediction& prediction : out) prediction.seconds = 1;
      return out;
    }
    const std::vector<double> speeds = sum_rows(*forest_, per_store_rows(), queries);
    for (size_t i = 0; i < out.size(); ++i) out[i].seconds = std::exp(-log_speed(speeds[i]));
    return out;
  }
  ModelInputs inputs() const override { return {.rows = true}; }
  bool ranks_only() const override { return true; }
  bool ready() const override { return forest_.has_value(); }
  bool learns() const override { return true; }
  Status update(std::span<const MeasuredProgram> programs) override {
    if (programs.size() < kMinTrainingPrograms) return {};
    TS_ASSIGN_OR_RETURN(PackSumFit fit,
                        fit_gbt(programs, per_store_rows(), relative_speeds(programs), options_));
    forest_ = std::move(fit.forest);
    return {};
  }
  const ModelCard& card() const override { return card_; }
  Status save(const std::string& path) const override {
    return Error{ErrorCode::kUnsupported, path, "a model that learns during a search cannot be saved"};
  }

 private:
  GbtOptions options_;
  ModelCard card_;
  std::optional<Forest> forest_;
};

}  // namespace

std::unique_ptr<CostModel> make_online_xgboost(const GbtOptions& options) {
  return std::make_unique<OnlineXgboost>(options);
}

}  // namespace tensorsmith::learn
