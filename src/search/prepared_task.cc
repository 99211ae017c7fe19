#include "search/prepared_task.h"

#include <utility>

#include "ir/text.h"
#include "learn/dataset/import.h"
#include "search/kernel_class.h"
#include "search/plausible.h"

namespace tensorsmith::search {

Result<std::shared_ptr<const PreparedTask>> PreparedTask::create(TaskName name, const ir::Workload& workload,
                                                                 std::shared_ptr<const target::Device> device,
                                                                 const space::DesignSpace::Options& options) {
  auto space = space::DesignSpace::build(workload, *device, options);
  if (!space.ok()) return Error{space.error().code, "task '" + name.name + "'", space.error().message()};
  auto designed = std::make_shared<const DesignedSpace>(std::move(*space));
  const space::DesignSpace& design = designed->design();
  learn::StoredWorkload own{
      std::move(name.key), std::move(name.name), ir::print(workload), ir::flop_count(workload), {}};
  TS_ASSIGN_OR_RETURN(const auto made, create(std::move(own), std::move(designed), std::move(device)));
  auto task = std::make_shared<PreparedTask>(*made);
  task->design_ = &design;
  task->winograd_ = options.winograd;
  return std::shared_ptr<const PreparedTask>(std::move(task));
}

Result<std::shared_ptr<const PreparedTask>> PreparedTask::create(
    learn::StoredWorkload stored, std::shared_ptr<const SearchSpace> space,
    std::shared_ptr<const target::Device> device) {
  std::shared_ptr<PreparedTask> task(new PreparedTask());
  const ir::Workload& workload = space->workload();
  auto queried = std::make_shared<QueriedTask>(std::move(stored), workload, *device);
  // Stores call the devices of own records by another name.
  if (queried->stored.foreign_keys.empty()) queried->device.name = learn::stored_device_name(*device);
  task->queried_ = std::move(queried);
  task->kernel_class_ = search::kernel_class(workload);
  task->untuned_ = space->default_candidate();
  task->untuned_estimate_ = space->estimate(task->untuned_);
  task->least_seconds_ = implausible_below(workload, *device);
  auto untuned = space->to_trace(task->untuned_);
  auto plain = space->to_trace(space->plain_candidate());
  for (const auto& made : {untuned, plain})
    if (!made.ok()) return Error{made.error().code, "task '" + task->name() + "'", made.error().message()};
  task->untuned_trace_ = std::move(*untuned);
  task->plain_trace_ = std::move(*plain);
  task->space_ = std::move(space);
  task->device_ = std::move(device);
  return std::shared_ptr<const PreparedTask>(std::move(task));
}

const space::DesignSpace& PreparedTask::design() const {
  TS_CHECK(design_ != nullptr, "task " + name() + " has recorded programs, not a design space");
  return *design_;
}

}  // namespace tensorsmith::search
