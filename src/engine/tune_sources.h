// What a search begins with beside its own database: records, models, a language model; by default what is shipped.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/source_models.h"

namespace tensorsmith::engine {

struct TuneSources {
  std::vector<std::string> files;  // of records
  std::vector<SourceModel> models;
};

// entries: databases, exports of records, and models (ONNX files, zoo:NAME) whose tasks' records are meant. None: the
// records that are shipped, if warm_start. Errors: those of load_tasks().
Result<TuneSources> read_tune_sources(const std::vector<std::string>& entries, bool warm_start);

// The file of the language model that the strategy asks; empty: none. given: its file, "none", or empty: the strategy's
// own choice. kInvalidArgument: the strategy asks none, or needs one that is neither given nor shipped.
Result<std::string> language_model_for(const std::string& strategy, const std::string& given);

}  // namespace tensorsmith::engine
