// Gradient boosting by XGBoost; its headers stay in xgboost_fit.cc.
#pragma once

#include <span>
#include <vector>

#include "learn/cost_model.h"
#include "learn/gbt/forest.h"

namespace tensorsmith::learn {

struct GbtFit {
  Forest forest;
  // XGBoost's own prediction for each training row, in the order of the programs.
  std::vector<float> row_predictions;
};
Result<GbtFit> fit_gbt(std::span<const TrainingProgram> programs, const GbtOptions& options);

}  // namespace tensorsmith::learn
