// Chooses schedules for a model without measurements, because its device is not available or there
// is no time: the best by records, a cost model and the estimate.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/sinks.h"
#include "engine/tune/schedules.h"
#include "engine/tune/tune_model.h"
#include "engine/tune/warm_start.h"
#include "target/target.h"

namespace tensorsmith::engine {

// The chosen schedule of a task with its reason.
struct UnmeasuredChoice {
  enum class Reason : uint8_t {
    kUntuned,    // nothing is expected to be clearly faster
    kRecord,     // the fastest one measured on this very device
    kSeed,       // was fast elsewhere, see `source`
    kPredicted,  // the fastest by the cost model and the estimate
  };
  TaskSchedule schedule;
  Reason reason = Reason::kUntuned;
  std::optional<ProgramSource> source;
  double gain = 1;  // expected: untuned seconds / seconds
};

// Returns the reason as reports show it: "untuned", "record", "fast elsewhere" or "predicted".
const char* to_string(UnmeasuredChoice::Reason reason);

// Compiles the models for a device, which need not be this machine's, and returns the choices by
// model and task. A schedule is the fastest usable record of this very device, if
// options.where.database has one. Else it is the candidate with the largest expected gain. The
// logarithm of this gain is half of the logarithm of the gain predicted by the cost model and the
// estimate, which are overconfident about their own favourites. For a program that was fast
// elsewhere, the logarithm of the gain measured there is added, discounted by the distance of
// shapes and devices. The untuned schedule is kept unless the expected gain is at least 2 %. If the
// options name no cost model, the shipped one is used. No cost model learns here. Errors: those of
// read_tune_sources, make_search_model and compile_model; a cost model that cannot predict.
Result<std::vector<std::vector<UnmeasuredChoice>>> compile_unmeasured(const std::vector<ModelToTune>& models,
                                                                      const target::Device& device,
                                                                      const TuneModelOptions& options,
                                                                      LogSink& log,
                                                                      const std::atomic<bool>& cancel);

}  // namespace tensorsmith::engine
