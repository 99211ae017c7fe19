// Writes a schedule as instructions of MetaSchedule: the inverse of replay().
#pragma once

#include <vector>

#include "base/result.h"
#include "record/metaschedule/instruction.h"
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::record {

// Returns the instructions that make the loops of our trace of the module that write_tir_module()
// writes for the workload. `fresh` is Schedule::create of the workload. They contain no choices, so
// they have no decisions. Left out is what TVM does by itself: how it treats tails of splits (it guards
// them), packed layouts of constants, and on CPUs the memory of copies. kUnsupported: steps that TVM
// lacks or refuses (packed layouts of intermediate tensors, Winograd, dot products, some reductions
// in parts), with the same reason for all records of a kind; else the errors of the
// steps' checks.
Result<std::vector<MetaScheduleInstruction>> to_instructions(const sched::Schedule& fresh,
                                                             const sched::Trace& trace,
                                                             target::DeviceKind device);

}  // namespace tensorsmith::record
