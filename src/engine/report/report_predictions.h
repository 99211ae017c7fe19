// Adds a cost model's predictions for a report's programs, beside their measured times.
#pragma once

#include <string>

#include "engine/report/report_data.h"

namespace tensorsmith::engine {

// Predicts the best program of each task and others from fast to slow, some hundreds in all, with
// the model of a file. Programs that the model cannot predict are left out. Notes say what the
// model was not trained on. Uses `threads` threads. Errors: those of learn::load_cost_model;
// kInvalidArgument for a model that only ranks.
Status add_predictions(const std::string& file, int threads, Report& report);

}  // namespace tensorsmith::engine
