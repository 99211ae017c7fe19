// The text that `tune` prints at its end.
#pragma once

#include <string>

#include "engine/tune/tune_model.h"

namespace tensorsmith::tools {

// Source of a task's schedule: "conv2d_relu_1x64x56x56, local".
std::string source_text(const engine::ProgramSource& source);

// Prints a table of the tasks, those with the largest share of the time first, and the speed-up of
// the whole model. elapsed: seconds of the whole command.
void print_tune_report(const engine::TunedModel& tuned, const std::string& directory,
                       const std::string& database, double elapsed);

}  // namespace tensorsmith::tools
