// Converts the measured candidates of tests/data/estimate/measurements.jsonl to records for
// databases and cost models: programs of our own design space on a CPU, with three instruction
// sets.
#pragma once

#include <vector>

#include "record/database.h"
#include "support/estimate_measurements.h"

namespace tensorsmith::test {

// Returns devices and tasks before the records that refer to them. Trials that are not in the space
// of their task are left out. Devices are called "local", as on the machine that measured them, so
// that a store names them by CPU, instruction set and threads.
std::vector<record::Database::Item> records_of(const std::vector<MeasuredTask>& tasks);

}  // namespace tensorsmith::test
