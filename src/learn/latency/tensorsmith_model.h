// Tensorsmith's own latency model. For each kind of program it has four objects:
//
//   base         the sum of the times of the program's resources, with factors fitted for each
//                structure of computation and device (learn/latency/tensorsmith_base.h)
//   correction   boosted trees that have learned the logarithm of what the base leaves unexplained
//                (learn/latency/tensorsmith_correction.h)
//   adaptation   takes the place of the correction on a device without training data, and has a part
//                in the predictions for one with little (learn/latency/tensorsmith_adaptation.h)
//   calibration  shifts predictions and states their errors
//                (learn/latency/tensorsmith_calibration.h)
//
//   log seconds = log base + correction - shift
//
// The base scales with the device's clocks and bandwidths, and so does every prediction.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "learn/latency/kinds.h"
#include "learn/latency/tensorsmith_adaptation.h"
#include "learn/latency/tensorsmith_calibration.h"
#include "learn/latency/tensorsmith_correction.h"

namespace tensorsmith::learn {

// The parts of the model that predict programs of one kind.
struct TensorsmithParts {
  TensorsmithBase base;
  TensorsmithCorrection correction;
  TensorsmithAdaptation adaptation;
  TensorsmithCalibration calibration;

  // Returns whether the training part had such programs on any device. If not, neither factors nor
  // trees are meaningful, and the roofline is used instead.
  bool knows(feature::WorkloadStructure structure) const;
  // Computes log(seconds), without calibration, for programs on one device. If not empty, ranks
  // receives the logarithms to rank by, and disagreement receives Prediction::disagreement.
  void log_seconds(const target::Device& device, std::span<const feature::ProgramSummary> programs,
                   std::span<double> out, std::span<double> disagreement = {},
                   std::span<double> ranks = {}) const;
};

// Choices of the training that all kinds of programs share.
struct TensorsmithRecipe {
  BaseFormula base = BaseFormula::kResources;
  bool device_columns = true;  // whether the correction sees columns that identify the device
  double rank_weight = 0;      // TensorsmithCorrection::rank_weight
};

class TensorsmithModel final : public CostModel {
 public:
  explicit TensorsmithModel(const TensorsmithRecipe& recipe) { set_recipe(recipe); }

  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override;
  ModelInputs inputs() const override { return {.leaves = true, .trace = true, .summary = true}; }
  const ModelCard& card() const override { return model_card; }
  Status save(const std::string& path) const override;
  static Result<std::unique_ptr<CostModel>> from_file(ModelFile file);

  const TensorsmithRecipe& recipe() const { return recipe_; }
  // Passes the choices on to all parts. Columns that depend on the workload's size are visible to
  // the correction only without a base: few training workloads share a size, so trees would use
  // these columns to memorize the error of each workload (docs/decisions/015-latency-model.md).
  void set_recipe(const TensorsmithRecipe& recipe);

  ModelCard model_card;
  ByProgramKind<TensorsmithParts> kinds;

 private:
  TensorsmithRecipe recipe_;
};

}  // namespace tensorsmith::learn
