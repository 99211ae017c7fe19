// A task on a device, with all data that follow from the two. It is made once, when a model is loaded,
// and shared by all code that chooses, searches, predicts and records the task's programs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "search/search_space.h"

namespace tensorsmith::search {

// Names a task in messages and records.
struct TaskName {
  std::string key;  // ir::structural_key of the workload
  std::string name;
};

class PreparedTask {
 public:
  // Creates a task with all programs of its design space. Errors: those of space::DesignSpace::build,
  // with the task as their place.
  static Result<std::shared_ptr<const PreparedTask>> create(TaskName name, const ir::Workload& workload,
                                                            std::shared_ptr<const target::Device> device,
                                                            const space::DesignSpace::Options& options);
  // Creates a task with the programs of the given space. `stored` tells cost models who compiled them: somebody
  // else if it has foreign keys.
  static Result<std::shared_ptr<const PreparedTask>> create(learn::StoredWorkload stored,
                                                            std::shared_ptr<const SearchSpace> space,
                                                            std::shared_ptr<const target::Device> device);

  const std::string& key() const { return queried_->stored.key; }
  const std::string& name() const { return queried_->stored.name; }
  // The workload as text, as records and stores keep it.
  const std::string& text() const { return queried_->stored.text; }
  double flops() const { return queried_->stored.flops; }
  uint64_t kernel_class() const { return kernel_class_; }
  const ir::Workload& workload() const { return space_->workload(); }
  const target::Device& device() const { return *device_; }
  // Whether the space has schedules that use Winograd's filtering. If not, records that use it are
  // ignored.
  bool winograd() const { return winograd_; }

  const SearchSpace& space() const { return *space_; }
  // The design space; a task with recorded programs has none.
  const space::DesignSpace& design() const;
  bool has_design() const { return design_ != nullptr; }

  // The untuned schedule and its estimated seconds.
  const space::Candidate& untuned() const { return untuned_; }
  const sched::Trace& untuned_trace() const { return untuned_trace_; }
  double untuned_estimate() const { return untuned_estimate_; }
  // Plain loops: the fallback if the untuned schedule cannot be built or run.
  const sched::Trace& plain_trace() const { return plain_trace_; }
  // Seconds that no program of the task can go below (implausible_below).
  double least_seconds() const { return least_seconds_; }

  // The description of the task in queries to cost models.
  const QueriedTask& queried() const { return *queried_; }
  // Makes an object that computes inputs of candidates; each thread needs its own. It may outlive
  // this object.
  std::unique_ptr<InputsOfCandidates> make_extractor(const learn::ModelInputs& wanted) const {
    return space_->make_extractor(queried_, wanted);
  }

 private:
  PreparedTask() = default;

  std::shared_ptr<const target::Device> device_;
  std::shared_ptr<const SearchSpace> space_;
  const space::DesignSpace* design_ = nullptr;  // owned by space_
  std::shared_ptr<const QueriedTask> queried_;
  uint64_t kernel_class_ = 0;
  bool winograd_ = true;
  space::Candidate untuned_;
  sched::Trace untuned_trace_, plain_trace_;
  double untuned_estimate_ = 0, least_seconds_ = 0;
};

}  // namespace tensorsmith::search
