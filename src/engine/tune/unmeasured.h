// Chooses schedules for a model without measurements, because its device is not available or there
// is no time: the best by records, a cost model and the estimate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/model/load_model.h"
#include "engine/tune/schedules.h"
#include "engine/tune/warm_start.h"
#include "learn/cost_model.h"
#include "target/target.h"

namespace tensorsmith::engine {

struct UnmeasuredOptions {
  ScheduleOptions schedules;
  SeedOptions seeds;
  uint64_t seed = 0;
  int threads = 1;  // threads that choose
};

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

// Returns a choice per task. The logarithm of a candidate's expected gain is half of the gain
// predicted by the cost model (null: none) and the estimate, which are overconfident about their
// own favourites. For a program that was fast elsewhere it also includes the gain measured there,
// discounted by the distance of shapes and devices. The untuned schedule is kept unless the
// expected gain is at least 2 %. Errors: a cost model that cannot predict.
Result<std::vector<UnmeasuredChoice>> choose_unmeasured(const LoadedModel& model,
                                                        const target::Device& device, const WarmStart& known,
                                                        const learn::CostModel* cost_model,
                                                        const UnmeasuredOptions& options);

}  // namespace tensorsmith::engine
