// Results of the commands as JSON, for `--json` and for the Python package.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/predict/predict.h"
#include "engine/tune/tune_model.h"
#include "engine/tune/unmeasured.h"

namespace tensorsmith::engine {

nlohmann::json to_json(const ProgramSource& source);

// The same representation in all documents: "end_to_end" is a Speedup, "estimate" an Estimate,
// which is null if it is not known.
nlohmann::json to_json(const Speedup& speedup);
nlohmann::json to_json(const Estimate& estimate);

// `directory` is that of the compiled model, `database` a path or address. Times are in seconds;
// null if unknown.
nlohmann::json to_json(const TunedModel& tuned, const std::string& directory, const std::string& database);

// Result of compile_unmeasured() for a model that was compiled to `directory`.
nlohmann::json to_json(const LoadedModel& model, const std::string& directory,
                       const std::vector<UnmeasuredChoice>& choices);

// Lists tasks and calls. Times are in seconds; null for an unknown interval.
nlohmann::json to_json(const Prediction& prediction);

}  // namespace tensorsmith::engine
