// `eval --rounds`: learning curves of cost models on the tasks of a store.
#pragma once

#include <string>
#include <vector>

#include "engine/predict/model_data.h"
#include "lab/learning_curve.h"

namespace tensorsmith::tools {

struct RoundsEvaluation {
  // Files, or kinds of models, which are trained on the split's training part.
  std::vector<std::string> models;
  lab::LearningCurveOptions curves;
  std::string plot;  // SVG file; may be empty
  bool json = false;
};
// Evaluates on these records of the store, which should be those of a part of the split.
Status evaluate_rounds(const RoundsEvaluation& evaluation, const engine::ModelData& data,
                       const learn::Split& split, const std::vector<int64_t>& records);

}  // namespace tensorsmith::tools
