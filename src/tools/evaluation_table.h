// Models x splits as a table in Markdown.
#pragma once

#include <string>
#include <vector>

#include "engine/model_data.h"

namespace tensorsmith::tools {

// models, splits: "[NAME=]FILE"; the name of a model without one is its kind, of a split the file's; splits
// of one name (seeds) are one column. Each model is evaluated on the test part of the split that it was
// trained by, and there on the devices that it was trained on if the split trains some of them; a model whose
// split is not among the splits is an error (kMismatch). A cell is the mean over devices of the MAPE (of the
// median error), then top-1 / top-5; of several models of one name (seeds) for one device the mean, and of
// the MAPE the standard deviation over them.
Result<std::string> evaluation_table(const engine::ModelData& data, const std::vector<std::string>& models,
                                     const std::vector<std::string>& splits, int threads);

}  // namespace tensorsmith::tools
