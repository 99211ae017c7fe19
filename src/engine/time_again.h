// Programs timed beside each other.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/compare_searches.h"
#include "ir/workload.h"
#include "measure/measurer.h"

namespace tensorsmith::engine {

using MakeMeasurer = std::function<Result<std::unique_ptr<measure::Measurer>>()>;

// Sets Winner::again: the median of a few measurements of each program, taken in turns, so that all meet the same machine.
// Each turn has a measurer of its own, so that nothing that only one process has, such as the pages of its memory, decides. Programs that
// occur several times are timed once; +inf for those that fail. Nothing is set where a measurer was cut off.
Status time_again(const ir::Workload& workload, const MakeMeasurer& make_measurer,
                  const std::vector<Winner*>& winners);

}  // namespace tensorsmith::engine
