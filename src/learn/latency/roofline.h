// An analytic estimate from the device's figures: what a program would take if nothing but arithmetic peak,
// memory bandwidth and idle units mattered. Nothing is learned.
#pragma once

#include "feature/per_store.h"
#include "target/target.h"

namespace tensorsmith::learn {

// Seconds. Each leaf (store statement) takes the longer of
//   float operations / (peak * utilization)  and  bytes touched at least once / memory bandwidth,
// and a GPU kernel also its launch. Utilization (Williams et al., "Roofline", CACM 2009, with ceilings):
// CPU: cores that have work, whole rounds of parallel chunks counted, times vector lanes used. GPU: blocks in
// whole waves of what fits the multiprocessors, times threads in whole warps, times lanes kept busy.
// Figures that the device does not have (0) bound nothing.
double roofline_seconds(const feature::LeafFeatures& leaves, const target::Device& device);

}  // namespace tensorsmith::learn
