// Measurement noise can make a program look best, and other programs on the machine can make a fast one
// lose. If a winner is close to the default or to other programs, or one of them was measured while others
// used the machine, they are measured again, interleaved, and the costs of the medians decide.
#pragma once

#include <optional>

#include "measure/measurer.h"
#include "search/task_state.h"

namespace tensorsmith::search {

// Returns the program of a task to report, preferring the default in case of doubt; nothing if
// there is no doubt or none of the programs runs. These measurements are not recorded, since the
// candidates already have records.
Result<std::optional<sched::Trace>> confirm_winner(const TaskState& state, measure::Measurer& measurer);

}  // namespace tensorsmith::search
