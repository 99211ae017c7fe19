// Whether a record can be true.
#pragma once

#include "ir/workload.h"
#include "record/record.h"
#include "target/target.h"

namespace tensorsmith::search {

// Seconds that no program of the workload stays below on the device: its operations at many times the peak
// (so that instructions for short elements and algorithms with fewer products have room), its outputs at two
// stored vectors a cycle and core, and one nanosecond.
double implausible_below(const ir::Workload& workload, const target::Device& device);
// The same for what is known by these numbers only.
double implausible_below(double flops, double output_bytes, const target::Device& device);

// Of an ok result: its time is a number of at least `least` seconds.
bool is_plausible(const record::MeasureResult& result, double least);

}  // namespace tensorsmith::search
