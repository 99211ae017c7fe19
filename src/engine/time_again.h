// Programs timed beside each other.
#pragma once

#include <vector>

#include "engine/compare_searches.h"
#include "ir/workload.h"
#include "measure/measurer.h"

namespace tensorsmith::engine {

// Sets Winner::again: the median of a few measurements of each program, taken in turns, so that all meet the same machine.
// Programs that occur several times are timed once; +inf for those that fail. Nothing is set where the
// measurer was cut off.
Status time_again(const ir::Workload& workload, measure::Measurer& measurer,
                  const std::vector<Winner*>& winners);

}  // namespace tensorsmith::engine
