// What the cost model of kind "draft" says: a roofline per store from the per-store features and the device's
// figures. It needs no training and ranks candidates of one task, no more.
#pragma once

#include "feature/per_store.h"
#include "target/target.h"

namespace tensorsmith::learn {

// Estimated seconds of one execution on `threads` cores (at most the device's): over the stores, the sum of
// the longest of
//   arithmetic   vector instructions / issue width, a multiply and an add as one; serial chains by latency
//   registers    loads and stores that do not stay in a register, by the reuse distance of each buffer
//   caches       lines moved into each level, where reuse at a distance larger than the level is lost
//   memory       lines moved from memory, shared by all cores
// plus loop overhead, divided by the balance of the parallel loop, plus a fork for each parallel nest.
double draft_seconds(const feature::FeatureMatrix& features, const target::Device& device, int threads);

}  // namespace tensorsmith::learn
