// Computes the inputs of the cost model for a candidate: decisions -> schedule -> features. A trace
// is created only if the candidate is measured or the model reads traces; lowering is done only if
// it is measured.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "feature/per_store.h"
#include "feature/program_summary.h"
#include "learn/cost_model.h"
#include "record/candidate.h"
#include "space/design_space.h"
#include "target/target.h"

namespace tensorsmith::search {

feature::PerStoreOptions feature_options(const target::Device& device);

// A task on a device in the form that queries to a cost model need, with facts that follow from its
// workload. Made once per task.
struct QueriedTask {
  // The task's own programs, which Tensorsmith compiles. The device's name becomes that of stores.
  QueriedTask(std::string key, std::string name, const ir::Workload& workload, double flops,
              const target::Device& device);
  // A task of somebody else's programs if `stored` has foreign keys.
  QueriedTask(learn::StoredWorkload stored, const ir::Workload& workload, const target::Device& device);

  learn::StoredWorkload stored;
  target::Device device;
  feature::WorkloadAccess access;
};

// The inputs that a cost model reads of a program; the others are empty.
struct ProgramInputs {
  feature::FeatureMatrix rows;
  feature::LeafFeatures leaves;
  sched::Trace trace;
  std::optional<feature::ProgramSummary> summary;
  std::optional<record::DesignPoint> point;
  std::optional<space::EstimateParts> parts;

  learn::ProgramQuery query(const QueriedTask& task) const {
    return {.workload = &task.stored,
            .leaves = &leaves,
            .trace = &trace,
            .device = &task.device,
            .rows = &rows,
            .summary = summary ? &*summary : nullptr,
            .point = point ? &*point : nullptr,
            .parts = parts ? &*parts : nullptr};
  }
};

// Computes the inputs from a trace; the error names the stage that failed.
Result<std::shared_ptr<const ProgramInputs>> inputs_of(const QueriedTask& task, const ir::Workload& workload,
                                                       const sched::Trace& trace,
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
  CandidateFeatures(const space::DesignSpace& space, std::shared_ptr<const QueriedTask> task,
                    const learn::ModelInputs& wanted)
      : space_(space), task_(std::move(task)), features_(feature_options(task_->device)), wanted_(wanted) {}
  Result<std::shared_ptr<const ProgramInputs>> of(const space::Candidate& candidate) override;

 private:
  space::DesignSpace space_;
  std::shared_ptr<const QueriedTask> task_;
  sched::Schedule schedule_;
  feature::ScheduleFeatures features_;
  learn::ModelInputs wanted_;
};

// Convert between a candidate and its form in records, from which a later run can continue.
// DesignSpace::check tells whether a point belongs to the space.
record::DesignPoint to_point(const space::Candidate& candidate);
space::Candidate from_point(const record::DesignPoint& point);

}  // namespace tensorsmith::search
