// Checks whether the time of a record is physically possible.
#pragma once

#include "ir/workload.h"
#include "record/record.h"
#include "target/target.h"

namespace tensorsmith::search {

// Returns seconds below which no program of the workload can be on the device: the largest of
// - the time of its operations at many times the peak rate, because instructions on short elements
//   and algorithms with fewer products are faster than the peak,
// - the time to write its outputs with two vector stores per cycle and core,
// - one nanosecond.
double implausible_below(const ir::Workload& workload, const target::Device& device);
// Likewise, for a workload known only by these numbers.
double implausible_below(double flops, double output_bytes, const target::Device& device);

// Returns whether the time of a successful result is finite and at least `least` seconds.
bool is_plausible(const record::MeasureResult& result, double least);

}  // namespace tensorsmith::search
