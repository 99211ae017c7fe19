// Evaluates models on splits, as a table in Markdown.
#pragma once

#include <string>
#include <vector>

#include "engine/predict/model_data.h"

namespace tensorsmith::tools {

// models, splits: "[NAME=]FILE". The default name of a model is its kind, that of a split its file
// name. Splits with the same name (seeds) share a column. Each model is evaluated on the test part
// of the split that it was trained with, restricted to its training devices if the split trains
// some of them. kMismatch for a model whose split is not among the splits. A cell has the mean over
// devices of the MAPE (of the median error), then top-1 / top-5. For several models of one name
// (seeds) and one device it has the mean, and the standard deviation of the MAPE.
Result<std::string> evaluation_table(const engine::ModelData& data, const std::vector<std::string>& models,
                                     const std::vector<std::string>& splits, int threads);

}  // namespace tensorsmith::tools
