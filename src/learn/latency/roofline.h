// An analytic estimate from the device's figures: the time that a program would take if it were
// limited only by peak arithmetic rate, memory bandwidth and idle units. Nothing is learned.
#pragma once

#include "feature/per_store.h"
#include "target/target.h"

namespace tensorsmith::learn {

// Returns seconds. Each leaf (store statement) takes the longer of
//   float operations / (peak * utilization)  and  bytes touched at least once / memory bandwidth,
// and a GPU kernel also its launch overhead. Utilization (Williams et al., "Roofline", CACM 2009,
// with ceilings): CPU: share of busy cores, with parallel chunks assigned in whole rounds, times
// share of vector lanes used. GPU: share of busy multiprocessor slots, with blocks assigned in
// whole waves, times share of active threads in whole warps, times share of lanes that are kept
// busy. Figures that the device lacks are assumed (target/machine.h).
double roofline_seconds(const feature::LeafFeatures& leaves, const target::Device& device);

}  // namespace tensorsmith::learn
