// Loads, runs, checks and times one candidate on a device.
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

// A task's constants in the layouts of the kernels, in device memory, one copy for each set of
// tensors.
class DeviceConstants {
 public:
  DeviceConstants(runtime::Gpu& gpu, const DeviceTask& task) : gpu_(gpu), task_(task) {}
  // Returns the copies by set. They are made once and kept until drop_if_large().
  Result<std::vector<runtime::GpuSpan>> get(const lower::PreparedConstant& constant);
  // Drops all copies if they use much memory. No candidate may be using them.
  void drop_if_large();

 private:
  using Copies = std::vector<std::unique_ptr<runtime::GpuMemory>>;
  Result<Copies> make(const lower::PreparedConstant& constant);

  runtime::Gpu& gpu_;
  const DeviceTask& task_;
  std::map<std::string, Copies> made_;
  int64_t bytes_ = 0;
};

// Runs a candidate. Every failure is an outcome: kBuildError if the device cannot load or launch
// it, kCrash for kernels that fail, kMemoryLimit, kWrongOutput.
record::MeasureResult run_on_device(runtime::Gpu& gpu, DeviceTask& task, DeviceConstants& constants,
                                    const RunRequest& request);

// As above, for a reference program, which runs once and is not checked: it writes the task's
// expected outputs.
record::MeasureResult run_reference_on_device(runtime::Gpu& gpu, DeviceTask& task, DeviceConstants& constants,
                                              const RunRequest& request);

}  // namespace tensorsmith::measure
