// Checks whether the time of a record is physically possible.
#pragma once

#include "ir/workload.h"
#include "record/record.h"
#include "target/target.h"

namespace tensorsmith::search {

// Returns a time in seconds that no program of the workload can go below on the device: the longest
// of its operations at many times the peak rate (to allow for instructions on short elements and
// algorithms with fewer products), its outputs at two vector stores per cycle and core, and one
// nanosecond.
double implausible_below(const ir::Workload& workload, const target::Device& device);
// Likewise, for a workload known only by these numbers.
double implausible_below(double flops, double output_bytes, const target::Device& device);

// Returns whether the time of a successful result is finite and at least `least` seconds.
bool is_plausible(const record::MeasureResult& result, double least);

}  // namespace tensorsmith::search
