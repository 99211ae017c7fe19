// From a candidate to what the cost model sees: decisions -> schedule -> its features. Traces wait until a
// candidate is to be measured or the model reads them, lowering until it is measured.
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

// What a cost model reads of a program; the rest is empty.
struct ProgramInputs {
  feature::FeatureMatrix rows;
  feature::LeafFeatures leaves;
  sched::Trace trace;

  learn::ProgramQuery query(const learn::StoredWorkload& workload, const target::Device& device) const {
    return {&workload, &leaves, &trace, &device, &rows};
  }
};

// Of a trace; the error says which stage refused it.
Result<std::shared_ptr<const ProgramInputs>> inputs_of(const ir::Workload& workload,
                                                       const sched::Trace& trace,
                                                       const feature::PerStoreOptions& options,
                                                       const learn::ModelInputs& wanted);

// The same of candidates of one space; the errors too. One object a thread.
class InputsOfCandidates {
 public:
  virtual ~InputsOfCandidates() = default;
  virtual Result<std::shared_ptr<const ProgramInputs>> of(const space::Candidate& candidate) = 0;
};

// Of a design space. Keeps memory from one candidate to the next.
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

// As records keep a candidate, so that a later run can go on from it. Whether a point is one of the space,
// DesignSpace::check says.
record::DesignPoint to_point(const space::Candidate& candidate);
space::Candidate from_point(const record::DesignPoint& point);

}  // namespace tensorsmith::search
