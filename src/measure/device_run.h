// One candidate on a device: loaded, run, checked, timed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "measure/device_task.h"
#include "measure/protocol.h"
#include "runtime/device/gpu.h"

namespace tensorsmith::measure {

// A task's constants as kernels want them, in the device's memory, once for each set.
class DeviceConstants {
 public:
  DeviceConstants(runtime::Gpu& gpu, const DeviceTask& task) : gpu_(gpu), task_(task) {}
  // By set. Made once and kept until drop_if_large().
  Result<std::vector<runtime::GpuSpan>> get(const lower::PreparedConstant& constant);
  // Forgets all where they take much room: no candidate uses them now.
  void drop_if_large();

 private:
  using Copies = std::vector<std::unique_ptr<runtime::GpuMemory>>;
  Result<Copies> make(const lower::PreparedConstant& constant);

  runtime::Gpu& gpu_;
  const DeviceTask& task_;
  std::map<std::string, Copies> made_;
  int64_t bytes_ = 0;
};

// Every way to fail is an outcome: kBuildError for what the device does not load or launch, kCrash for kernels that
// fail, kMemoryLimit, kWrongOutput.
record::MeasureResult run_on_device(runtime::Gpu& gpu, DeviceTask& task, DeviceConstants& constants,
                                    const RunRequest& request);

// The same of a reference program, which is run once and not checked: the task's outputs are its own.
record::MeasureResult run_reference_on_device(runtime::Gpu& gpu, DeviceTask& task, DeviceConstants& constants,
                                              const RunRequest& request);

}  // namespace tensorsmith::measure
