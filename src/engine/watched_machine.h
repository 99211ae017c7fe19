// The measurer of a long run: it keeps an eye on this machine (measure/watched_measurer.h).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "measure/measurer.h"
#include "measure/watched_measurer.h"

namespace tensorsmith::engine {

// The canary is a product of matrices by its untuned schedule, on as many threads and in a worker of its own. All but
// `options` and `worker` outlive the measurer.
Result<std::unique_ptr<measure::Measurer>> make_watched_measurer(const target::Device& device,
                                                                 const measure::MeasureOptions& options,
                                                                 const std::vector<std::string>& worker,
                                                                 const Clock& clock, LogSink& log,
                                                                 const std::atomic<bool>& cancel);

// The canary alone. Empty for GPUs, whose worker processes have one of their own.
Result<measure::Canary> make_machine_canary(const target::Device& device,
                                            const measure::MeasureOptions& options,
                                            const std::vector<std::string>& worker, LogSink& log);

}  // namespace tensorsmith::engine
