// Noise can make a program look best. Where a winner is close to the default or to its followers, these are
// measured again, interleaved, and the medians decide.
#pragma once

#include <optional>

#include "measure/measurer.h"
#include "search/task_state.h"

namespace tensorsmith::search {

// The program of a task to report, in doubt the default; nothing where there is no doubt, or none of them
// runs. What is measured here is no record: the candidates have theirs.
Result<std::optional<sched::Trace>> confirm_winner(const TaskState& state, measure::Measurer& measurer);

}  // namespace tensorsmith::search
