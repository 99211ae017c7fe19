// Times compiled models against each other and fills their inputs.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "runtime/model.h"

namespace tensorsmith::engine {

// Inputs and outputs of one model in aligned memory.
class ModelBuffers {
 public:
  // Floats of all types random in [-1, 1), integers 0 (always a valid index).
  ModelBuffers(const runtime::Model& model, uint64_t seed);
  std::vector<const void*> inputs() const;
  std::vector<void*> outputs();

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  using Block = std::unique_ptr<std::byte, Free>;
  static Block allocate(int64_t bytes);
  std::vector<Block> inputs_;
  std::vector<Block> outputs_;
};

struct Timing {
  std::vector<double> seconds;  // one a run
  double median() const;
  double quantile(double q) const;
};

// How long to time, for all models together.
struct TimingLimits {
  double seconds = 0;                                             // at least, and
  int runs = 1;                                                   // of each at least; unless these take
  double most_seconds = std::numeric_limits<double>::infinity();  // then a few runs do
};

// One run of a model that was loaded with profile; seconds.
struct ProfiledRun {
  double start_seconds = 0;  // after the first run began
  double seconds = 0;
  std::vector<double> calls;  // of each call of the description
};

// Runs the model so many times, and no more once `most_seconds` are over (one run at least), after a warm-up. Errors: those
// of Model::run.
Result<std::vector<ProfiledRun>> profile_runs(runtime::Model& model, int runs, uint64_t seed,
                                              const Clock& clock,
                                              double most_seconds = std::numeric_limits<double>::infinity());

// Runs the models in turn (A B A B ...) after a warm-up.
Result<std::vector<Timing>> time_interleaved(const std::vector<runtime::Model*>& models,
                                             const TimingLimits& limits, uint64_t seed, const Clock& clock);
// What that takes at least, of models which take so long each.
double least_timing_seconds(size_t models, double model_seconds, const TimingLimits& limits);

}  // namespace tensorsmith::engine
