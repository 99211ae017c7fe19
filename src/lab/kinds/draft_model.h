// The estimate behind the cost model of kind "draft": a roofline for each store statement, computed
// from the per-store features and the device's figures. It needs no training and only ranks
// candidates of one task.
#pragma once

#include "feature/per_store.h"
#include "target/target.h"

namespace tensorsmith::lab {

// Estimates the seconds of one execution on `threads` cores (at most as many as the device has).
// Sums over the store statements the longest of
//   arithmetic   vector instructions / issue width, with a multiplication and an addition fused into
//                one; serial chains by their latency
//   registers    loads and stores of values not kept in registers, by each buffer's reuse distance
//   caches       lines moved into each level; reuse at a distance beyond the level's size is lost
//   memory       lines moved from memory, whose bandwidth all cores share
// plus 20 % of the arithmetic, register and cache terms and the loop overhead. A parallel loop divides
// all but the memory term by its speedup, which depends on its load balance. The cost of a fork is
// added once if any statement runs in parallel.
double draft_seconds(const feature::FeatureMatrix& features, const target::Device& device, int threads);

}  // namespace tensorsmith::lab
