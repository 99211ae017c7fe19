// From a candidate to what the cost model sees: decisions -> schedule -> its features. Traces wait until a
// candidate is to be measured, lowering until it is.
#pragma once

#include <memory>
#include <string>

#include "feature/per_store.h"
#include "record/candidate.h"
#include "space/design_space.h"
#include "target/target.h"

namespace tensorsmith::search {

feature::PerStoreOptions feature_options(const target::Device& device);

// Features of a trace; the error says which stage refused it.
Result<std::shared_ptr<const feature::FeatureMatrix>> features_of(const ir::Workload& workload,
                                                                  const sched::Trace& trace,
                                                                  const feature::PerStoreOptions& options);

// The same of a space's candidates, without their traces; the errors too. Keeps memory from one candidate to
// the next: one object a thread.
class CandidateFeatures {
 public:
  CandidateFeatures(const space::DesignSpace& space, const feature::PerStoreOptions& options)
      : space_(space), features_(options) {}
  Result<std::shared_ptr<const feature::FeatureMatrix>> of(const space::Candidate& candidate);

 private:
  space::DesignSpace space_;
  sched::Schedule schedule_;
  feature::ScheduleFeatures features_;
};

// As records keep a candidate, so that a later run can go on from it. Whether a point is one of the space,
// DesignSpace::check says.
record::DesignPoint to_point(const space::Candidate& candidate);
space::Candidate from_point(const record::DesignPoint& point);

}  // namespace tensorsmith::search
