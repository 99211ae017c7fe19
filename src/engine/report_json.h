// What was done, for programs to read: `--json` of the commands, and what the Python package returns.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/predict.h"
#include "engine/tune_model.h"

namespace tensorsmith::engine {

nlohmann::json to_json(const ProgramSource& source);

// As every document has them: "end_to_end" is the first, "estimate" the second, which is null where it is not known.
nlohmann::json to_json(const Speedup& speedup);
nlohmann::json to_json(const Estimate& estimate);

// directory: of the compiled model. database: its path or address. Seconds; null where they are not known.
nlohmann::json to_json(const TunedModel& tuned, const std::string& directory, const std::string& database);

// By task and by call; seconds, null where an interval is not known.
nlohmann::json to_json(const Prediction& prediction);

}  // namespace tensorsmith::engine
