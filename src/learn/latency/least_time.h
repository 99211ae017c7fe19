// The least time that a device's figures allow a program: its roofline (Williams et al., "Roofline", CACM
// 2009). Nothing is learned, and no schedule of the program is faster.
#pragma once

#include <vector>

#include "feature/per_store.h"
#include "ir/workload.h"
#include "sched/schedule.h"
#include "target/target.h"

namespace tensorsmith::learn {

// Seconds, the longest of
//   arithmetic: reductions of the workload, or of the schedule's own stages where these need fewer
//     (Winograd's filtering, dot4), at two operations a lane and multiply-add; integers may be multiplied
//     four to a lane, and what tensor cores take 16 (f16) or 32 (bytes) to a lane of a GPU that has them;
//   loads and stores: every input that is read and every output once, two vectors loaded and one stored a
//     cycle and core;
//   memory: the same bytes at its bandwidth, where they are more than the caches hold. Fewer may stay there
//     from one run of the kernel to the next.
// A kernel uses no more cores than its parallel loops have iterations. Figures that the device does not have
// (0) bound nothing. leaves: of the schedule.
double least_seconds(const ir::Workload& workload, const sched::Schedule& schedule,
                     const feature::LeafFeatures& leaves, const target::Device& device);

// Bytes that the workload reads of each of its inputs (Workload::inputs), each element once.
std::vector<double> read_bytes(const ir::Workload& workload);
// Seconds that bytes take which a program touches once in each run: 0 where all caches together hold them.
double streaming_seconds(double bytes, const target::Device& device);

}  // namespace tensorsmith::learn
