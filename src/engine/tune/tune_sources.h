// Sources that a search starts from besides its own database: records, models, a language model; by
// default the shipped ones.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/tune/source_models.h"
#include "search/strategy.h"

namespace tensorsmith::engine {

// Returns a model (ONNX file or zoo:NAME) with the keys of its tasks. Errors: those of load_tasks().
Result<SourceModel> load_source_model(const std::string& path);

struct TuneSources {
  std::vector<std::string> files;  // files of records
  std::vector<SourceModel> models;
};

// Each entry is a database, an export of records, or a model (ONNX file or zoo:NAME) whose tasks'
// records are used. Without entries, the shipped records are used if `warm_start` is set. Errors:
// those of load_source_model().
Result<TuneSources> read_tune_sources(const std::vector<std::string>& entries, bool warm_start);

// Returns the file of a language model. `given`: a file, or "shipped". kNotFound: the shipped model is
// missing.
Result<std::string> language_model_file(const std::string& given);
// Returns the file of the language model that writes schedules during the search; empty: none.
// `given`: as in language_model_file, "none" or empty. kInvalidArgument: the strategy uses no language
// model.
Result<std::string> language_model_for(const search::StrategyKind& strategy, const std::string& given);

}  // namespace tensorsmith::engine
