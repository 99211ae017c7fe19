// Computes the inputs of the cost model for a candidate: decisions -> schedule -> features. A trace
// is created only if the candidate is measured or the model reads traces; lowering is done only if
// it is measured.
#pragma once

#include <memory>
#include <string>

#include "feature/per_store.h"
#include "learn/cost_model.h"
#include "record/candidate.h"
#include "space/design_space.h"
#include "target/target.h"

namespace tensorsmith::search {

feature::PerStoreOptions feature_options(const target::Device& device);

// The inputs that a cost model reads of a program; the others are empty.
struct ProgramInputs {
  feature::FeatureMatrix rows;
  feature::LeafFeatures leaves;
  sched::Trace trace;

  learn::ProgramQuery query(const learn::StoredWorkload& workload, const target::Device& device) const {
    return {&workload, &leaves, &trace, &device, &rows};
  }
};

// Computes the inputs from a trace; the error names the stage that failed.
Result<std::shared_ptr<const ProgramInputs>> inputs_of(const ir::Workload& workload,
                                                       const sched::Trace& trace,
                                                       const feature::PerStoreOptions& options,
                                                       const learn::ModelInputs& wanted);

// Computes the inputs, with the same errors, for candidates of one space. Each thread needs its own
// object.
class InputsOfCandidates {
 public:
  virtual ~InputsOfCandidates() = default;
  virtual Result<std::shared_ptr<const ProgramInputs>> of(const space::Candidate& candidate) = 0;
};

// Inputs for candidates of a design space. Reuses memory from one candidate to the next.
class CandidateFeatures final : public InputsOfCandidates {
 public:
  CandidateFeatures(const space::DesignSpace& space, const feature::PerStoreOptions& options,
                    const learn::ModelInputs& wanted)
      : space_(space), features_(options), wanted_(wanted) {}
  Result<std::shared_ptr<const ProgramInputs>> of(const space::Candidate& candidate) override;

 private:
  space::DesignSpace space_;
  sched::Schedule schedule_;
  feature::ScheduleFeatures features_;
  learn::ModelInputs wanted_;
};

// Convert between a candidate and its form in records, from which a later run can continue.
// DesignSpace::check tells whether a point belongs to the space.
record::DesignPoint to_point(const space::Candidate& candidate);
space::Candidate from_point(const record::DesignPoint& point);

}  // namespace tensorsmith::search
