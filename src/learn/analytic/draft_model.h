// A cost model that needs no training: a roofline per store from the per-store features and the device's
// figures. The prior of a search before anything is measured; ranks candidates of one task, no more.
#pragma once

#include <memory>

#include "feature/per_store.h"
#include "learn/cost_model.h"
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

// Scores -log(draft_seconds). CPU devices.
std::unique_ptr<CostModel> make_draft_model(const target::Device& device, int threads);

}  // namespace tensorsmith::learn
