#include "measure/device_measurer.h"

#include <algorithm>
#include <limits>

#include "base/processors.h"
#include "measure/process_measurer.h"

namespace tensorsmith::measure {

Result<std::unique_ptr<Measurer>> make_device_measurer(const DeviceArguments& where,
                                                       const MeasureOptions& options,
                                                       std::vector<std::string> worker_command, LogSink& log,
                                                       std::shared_ptr<const Builder> builder) {
  TS_RETURN_IF_ERROR(check_options(options, worker_command));
  TS_ASSIGN_OR_RETURN(const target::Device host, target::probe_local());
  ProcessMeasurerOptions how;
  how.reference_worker = worker_command;
  how.reference_worker.emplace_back(codegen::default_backend().name());
  how.reference_builder = make_builder(host, codegen::default_backend());
  how.worker = std::move(worker_command);
  for (const std::string& argument : device_arguments(where)) how.worker.push_back(argument);
  how.keep_spare = true;
  how.values = InputValues::kNormal;
  how.task_threads = host.cpu().cores;  // for reference programs
  // Load on this machine's cores does not affect the device's times.
  how.build_threads = std::max(options.build_threads, host.cpu().cores);
  auto measurer = std::make_unique<ProcessMeasurer>(options, std::move(how), std::move(builder), log);
  TS_RETURN_IF_ERROR(measurer->ensure_ready());
  return std::unique_ptr<Measurer>(std::move(measurer));
}

Result<std::unique_ptr<Measurer>> make_device_measurer(const target::Device& device,
                                                       const DeviceArguments& where,
                                                       const MeasureOptions& options,
                                                       std::vector<std::string> worker_command,
                                                       LogSink& log) {
  MeasureOptions own = options;
  // An OpenCL device may be this machine's CPU, where a kernel with one thread per element is slow.
  if (where.place.platform->may_be_host) own.most_host_flops = std::numeric_limits<double>::infinity();
  return make_device_measurer(where, own, std::move(worker_command), log,
                              make_builder(device, *options.backend));
}

}  // namespace tensorsmith::measure
