// Creates the measurer of a long run, which monitors this machine (measure/watched_measurer.h).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "measure/measurer.h"
#include "measure/watched_measurer.h"

namespace tensorsmith::engine {

// The canary is a matrix multiplication with its untuned schedule, on the same number of threads
// and in a worker of its own. All arguments but `options` and `worker` must outlive the measurer.
Result<std::unique_ptr<measure::Measurer>> make_watched_measurer(const target::Device& device,
                                                                 const measure::MeasureOptions& options,
                                                                 const std::vector<std::string>& worker,
                                                                 const Clock& clock, LogSink& log,
                                                                 const std::atomic<bool>& cancel);

// Creates the canary alone. Empty for GPUs, whose worker processes have their own canary.
Result<measure::Canary> make_machine_canary(const target::Device& device,
                                            const measure::MeasureOptions& options,
                                            const std::vector<std::string>& worker, LogSink& log);

}  // namespace tensorsmith::engine
