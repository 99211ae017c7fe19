// Times programs against each other.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ir/workload.h"
#include "lab/compare_searches.h"
#include "measure/measurer.h"

namespace tensorsmith::lab {

using MakeMeasurer = std::function<Result<std::unique_ptr<measure::Measurer>>()>;

// Sets Winner::again to the median of a few measurements of each program, taken in turns so that
// all programs meet the same state of the machine. Each turn uses a new measurer, so that
// properties of a single process, such as the placement of its memory pages, do not decide. A
// program that occurs several times is timed once; failed programs get +inf. If a measurer was
// interrupted, nothing is set.
Status time_again(const ir::Workload& workload, const MakeMeasurer& make_measurer,
                  const std::vector<Winner*>& winners);

}  // namespace tensorsmith::lab
