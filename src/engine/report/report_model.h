// Adds to a report where a compiled model spends the time of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "engine/report/report_data.h"
#include "runtime/device/gpu_platform.h"

namespace tensorsmith::engine {

struct ReportModelOptions {
  int threads = 0;  // 0 = the threads that it was tuned for, or all
  std::optional<runtime::GpuPlace> gpu = std::nullopt;
  bool run = true;    // false: use the times of its manifest instead
  uint64_t seed = 0;  // seed of the random inputs
};

// Runs the model a few times on random inputs, for at most some seconds. A model that this machine
// cannot run is only read, and ReportModel::not_run_because says why. Errors: those of
// runtime::Model::load.
Result<ReportModel> read_report_model(const std::string& directory, const ReportModelOptions& options,
                                      const Clock& clock);

}  // namespace tensorsmith::engine
