// Measures on a device: GPUs of this machine and any OpenCL device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "measure/builder.h"
#include "measure/device_worker.h"
#include "measure/measurer.h"

namespace tensorsmith::measure {

// As make_local_measurer(), for one device. A worker process owns the device's context, and a spare
// process is kept ready, so that a candidate that breaks the context or hangs costs one process.
// Candidates are built ahead on this machine's cores while another runs on the device. Times are
// measured by the device, in runs whose data exceed its cache; inputs are normally distributed.
// options.backend builds the modules; reference programs are built by the default backend and run
// on the CPU.
Result<std::unique_ptr<Measurer>> make_device_measurer(const target::Device& device,
                                                       const DeviceArguments& where,
                                                       const MeasureOptions& options,
                                                       std::vector<std::string> worker_command, LogSink& log);
// With an explicit builder, for tests.
Result<std::unique_ptr<Measurer>> make_device_measurer(const DeviceArguments& where,
                                                       const MeasureOptions& options,
                                                       std::vector<std::string> worker_command, LogSink& log,
                                                       std::shared_ptr<const Builder> builder);

}  // namespace tensorsmith::measure
