#include "measure/local_measurer.h"

#include <algorithm>

#include "base/processors.h"
#include "measure/process_measurer.h"

namespace tensorsmith::measure {

Result<std::unique_ptr<Measurer>> make_local_measurer(const target::Device& device,
                                                      const MeasureOptions& options,
                                                      std::vector<std::string> worker_command, LogSink& log,
                                                      std::shared_ptr<const Builder> builder) {
  TS_RETURN_IF_ERROR(check_options(options, worker_command));
  if (!options.backend->traits().self_contained) {
    return Error{ErrorCode::kUnsupported, "measuring",
                 "kernels of backend '" + std::string(options.backend->name()) +
                     "' cannot be loaded by a confined worker; measure with backend 'llvm'"};
  }
  const Processors machine = processors();
  ProcessMeasurerOptions how;
  how.worker = std::move(worker_command);
  how.worker.emplace_back(options.backend->name());
  how.task_threads = std::max(device.compute_units(), 1);
  // A kernel that uses every core, or all the processor time of the cgroup, must not share it with
  // builds.
  how.exclusive = how.task_threads >= machine.usable;
  how.build_threads =
      how.exclusive ? std::max(options.build_threads, machine.at_once) : options.build_threads;
  how.flush_bytes = std::clamp<int64_t>(device.l3_bytes + device.l2_bytes * device.compute_units(),
                                        int64_t{16} << 20, int64_t{256} << 20);
  how.load = system_load();
  auto measurer = std::make_unique<ProcessMeasurer>(options, std::move(how), std::move(builder), log);
  TS_RETURN_IF_ERROR(measurer->ensure_ready());
  return std::unique_ptr<Measurer>(std::move(measurer));
}

Result<std::unique_ptr<Measurer>> make_local_measurer(const target::Device& device,
                                                      const MeasureOptions& options,
                                                      std::vector<std::string> worker_command, LogSink& log) {
  return make_local_measurer(device, options, std::move(worker_command), log,
                             make_builder(device, *options.backend));
}

}  // namespace tensorsmith::measure
