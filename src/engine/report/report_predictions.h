// Adds a cost model's predictions for a report's programs, beside their measured times.
#pragma once

#include <string>

#include "engine/report/report_data.h"
#include "learn/latency/kinds.h"

namespace tensorsmith::engine {

// Predicts the best program of each task and others from fast to slow, some hundreds in all, with
// the model of a file. Programs that the model cannot predict are left out. Notes say what the
// model was not trained on. Uses `threads` threads. Errors: those of CostModelKinds::load;
// kInvalidArgument for a model that only ranks.
Status add_predictions(const std::string& file, const learn::CostModelKinds& kinds, int threads,
                       Report& report);

}  // namespace tensorsmith::engine
