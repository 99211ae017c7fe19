// What `tune` says at its end.
#pragma once

#include <string>

#include "engine/tune_model.h"

namespace tensorsmith::tools {

// "conv2d_relu_1x64x56x56, local": whose schedule a task runs.
std::string source_text(const engine::ProgramSource& source);

// A table of the tasks, those with the largest share of the time first, and the speed-up of the whole model.
// elapsed: seconds of the whole command.
void print_tune_report(const engine::TunedModel& tuned, const std::string& directory,
                       const std::string& database, double elapsed);

}  // namespace tensorsmith::tools
