// Replays a trace of MetaSchedule's instructions on the schedule of its workload.
#pragma once

#include "record/metaschedule/instruction.h"
#include "record/metaschedule/tir_module.h"
#include "sched/step.h"

namespace tensorsmith::record {

struct MetaScheduleProgram {
  sched::Schedule schedule;
  sched::Trace trace;  // our steps; their replay on the workload gives the schedule
};

// Replays the instructions, those of postprocessors included. Annotations for passes of TVM that our
// schedules have no steps for (software pipelines) have no effect. `fresh` is Schedule::create of
// the workload, `blocks` are its blocks. Errors, with the place "instruction N (Split)": kCorrupt
// for arguments that do not fit the instruction, kUnsupported for other instructions, kIllegal for
// what the checks of our steps refuse; kMismatch if a tensor would be in other memory than the trace
// says.
Result<MetaScheduleProgram> replay(const sched::Schedule& fresh, const std::vector<TirBlock>& blocks,
                                   const MetaScheduleRecord& record);

}  // namespace tensorsmith::record
