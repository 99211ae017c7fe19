// A lower bound on the time of a program from the device's figures: its roofline (Williams et al.,
// "Roofline", CACM 2009). Nothing is learned, and no schedule of the program can be faster.
#pragma once

#include <vector>

#include "feature/per_store.h"
#include "ir/workload.h"
#include "sched/schedule.h"
#include "target/target.h"

namespace tensorsmith::learn {

// Returns a lower bound in seconds, the longest of
//   arithmetic: the reductions of the workload, or those of the schedule's stages if these are fewer
//     (Winograd's filtering, dot4), at two operations per lane for a multiply-add. Integers may be
//     multiplied four per lane; on GPUs with tensor cores, 16 (f16) or 32 (bytes) products count per lane;
//   loads and stores: every input that is read and every output once, at two vector loads and one vector
//     store per cycle and core;
//   memory: the same bytes at the memory bandwidth, if they exceed the caches. Fewer bytes may stay in the
//     caches from one run of the kernel to the next.
// A kernel uses no more cores than its parallel loops have iterations. Figures that the device
// lacks (0) impose no bound. leaves: the leaf features of the schedule.
double least_seconds(const ir::Workload& workload, const sched::Schedule& schedule,
                     const feature::LeafFeatures& leaves, const target::Device& device);

// Returns the bytes that the workload reads from each of its inputs (Workload::inputs), counting
// each element at most once.
std::vector<double> read_bytes(const ir::Workload& workload);
// Returns the seconds to move bytes that each run of a program touches once: 0 if all caches
// together hold them.
double streaming_seconds(double bytes, const target::Device& device);

}  // namespace tensorsmith::learn
