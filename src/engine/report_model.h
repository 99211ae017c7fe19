// The part of a report that a compiled model tells: where the time of one run goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "engine/report_data.h"
#include "runtime/device/gpu_place.h"

namespace tensorsmith::engine {

struct ReportModelOptions {
  int threads = 0;  // 0 = as many as it was tuned for, or all
  std::optional<runtime::GpuPlace> gpu = std::nullopt;
  bool run = true;    // else what its manifest says counts
  uint64_t seed = 0;  // of the random inputs
};

// Runs the model a few times, at most some seconds, with random inputs. A model that this machine cannot run is read
// only, and says why. Errors: those of runtime::Model::load.
Result<ReportModel> read_report_model(const std::string& directory, const ReportModelOptions& options,
                                      const Clock& clock);

}  // namespace tensorsmith::engine
