// Checks whether a schedule's loops that are bound to GPU axes fit a device. The primitives check
// the rules of all devices; this checks those that depend on a device's limits.
#pragma once

#include "sched/schedule.h"
#include "target/target.h"

namespace tensorsmith::sched {

// For a GPU, each root stage with all stages attached below it is a kernel:
//  - it has a loop bound to a block axis or a thread axis;
//  - all its loops bound to the same thread axis have the same extent, the product over the three axes is at
//    most max_threads_per_block, virtual threads at most max_vthread_extent or those of tensor cores;
//  - the shared buffers' regions take at most shared_memory_per_block bytes;
//  - stages in shared or thread-local memory are computed inside a loop bound to a block axis.
// For a CPU: no loop is bound to a GPU axis. Limits of 0 are not checked. Errors: kIllegal, the place names
// the stage.
Status check_device_limits(const Schedule& schedule, const Bounds& bounds, const target::Device& device);

}  // namespace tensorsmith::sched
