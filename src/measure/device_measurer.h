// Measuring on a device: GPUs of this machine, and whatever OpenCL drives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "measure/builder.h"
#include "measure/device_worker.h"
#include "measure/measurer.h"

namespace tensorsmith::measure {

// As make_local_measurer, for one device. A worker process owns the device's context, and a spare one waits beside it:
// candidates that break the context, or do not end, cost a process each. Programs are built ahead on this machine's
// cores while one runs on the device. Times are the device's own, of runs whose data go through more than its cache;
// inputs are normal-distributed. options.backend makes the modules; the default backend's reference programs run here.
Result<std::unique_ptr<Measurer>> make_device_measurer(const target::Device& device,
                                                       const DeviceArguments& where,
                                                       const MeasureOptions& options,
                                                       std::vector<std::string> worker_command, LogSink& log);
// With its builder shown, for tests.
Result<std::unique_ptr<Measurer>> make_device_measurer(const DeviceArguments& where,
                                                       const MeasureOptions& options,
                                                       std::vector<std::string> worker_command, LogSink& log,
                                                       std::shared_ptr<const Builder> builder);

}  // namespace tensorsmith::measure
