// What a cost model says of a report's programs, beside what was measured.
#pragma once

#include <string>

#include "engine/report_data.h"

namespace tensorsmith::engine {

// Asks the model of a file about the best program of each task and others from fast to slow, some hundreds in all; those
// that it cannot take are left out. Notes say what it was not trained on. threads: that ask. Errors: those of
// learn::load_cost_model; kInvalidArgument for one that only ranks.
Status add_predictions(const std::string& file, int threads, Report& report);

}  // namespace tensorsmith::engine
