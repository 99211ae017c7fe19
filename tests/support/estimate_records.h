// The measured candidates of tests/data/estimate/measurements.jsonl as records, which databases and cost models take: programs of our own
// design space on a processor, with three instruction sets.
#pragma once

#include <vector>

#include "record/database.h"
#include "support/estimate_measurements.h"

namespace tensorsmith::test {

// Devices and tasks before the records of them. Trials that their task's space does not have are left out. Devices are called "local",
// as where they were measured, so that a store names them by processor, instruction set and threads.
std::vector<record::Database::Item> records_of(const std::vector<MeasuredTask>& tasks);

}  // namespace tensorsmith::test
