// Schedules for a model of which nothing is measured, because its device is not at hand or there is no time: the best that
// records, a cost model and the estimate know.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/load_model.h"
#include "engine/schedules.h"
#include "engine/warm_start.h"
#include "learn/cost_model.h"
#include "target/target.h"

namespace tensorsmith::engine {

struct UnmeasuredOptions {
  ScheduleOptions schedules;
  SeedOptions seeds;
  uint64_t seed = 0;
  int threads = 1;  // that choose
};

// What a task is to run, and why.
struct UnmeasuredChoice {
  enum class Reason : uint8_t {
    kUntuned,    // nothing promises more
    kRecord,     // measured on this very device: the fastest
    kSeed,       // fast elsewhere, see `source`
    kPredicted,  // the cost model and the estimate think it the fastest
  };
  TaskSchedule schedule;
  Reason reason = Reason::kUntuned;
  std::optional<ProgramSource> source;
  double gain = 1;  // expected: seconds untuned over seconds
};

// By task. A candidate's expected gain, as a logarithm, is half of what the cost model (null: none) and the estimate say of
// it, which are too sure of what they choose themselves; and for a program that was fast elsewhere what it gained there,
// the less the further shapes and devices are. The untuned schedule stays unless that comes to 2 %. Errors: a cost
// model that cannot predict.
Result<std::vector<UnmeasuredChoice>> choose_unmeasured(const LoadedModel& model,
                                                        const target::Device& device, const WarmStart& known,
                                                        const learn::CostModel* cost_model,
                                                        const UnmeasuredOptions& options);

}  // namespace tensorsmith::engine
