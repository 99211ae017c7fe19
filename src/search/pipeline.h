// From a candidate to what the cost model sees: trace -> replay -> features of the schedule. Lowering
// would take five times as long and waits until a candidate is measured.
#pragma once

#include <memory>
#include <string>

#include "feature/per_store.h"
#include "space/design_space.h"
#include "target/target.h"

namespace tensorsmith::search {

struct ProgramSample {
  sched::Trace trace;
  std::shared_ptr<const feature::FeatureMatrix> features;
};

feature::PerStoreOptions feature_options(const target::Device& device);

// Features of a trace; the error says which stage refused it.
Result<std::shared_ptr<const feature::FeatureMatrix>> features_of(const ir::Workload& workload,
                                                                  const sched::Trace& trace,
                                                                  const feature::PerStoreOptions& options);

Result<ProgramSample> make_sample(const space::DesignSpace& space, const space::Candidate& candidate,
                                  const feature::PerStoreOptions& options);

// "SKETCH/d,d,d": kept with a record, so that a later run can continue from the candidate.
std::string encode(const space::Candidate& candidate);
std::optional<space::Candidate> decode(std::string_view text);

}  // namespace tensorsmith::search
