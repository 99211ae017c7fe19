// Times compiled models against each other, with generated inputs.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "runtime/model.h"

namespace tensorsmith::engine {

// Inputs and outputs of one model, in aligned memory.
class ModelBuffers {
 public:
  // Fills floats of all types with random values in [-1, 1) and integers with 0, which is always a
  // valid index.
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
  std::vector<double> seconds;  // one per run
  double median() const;
  double quantile(double q) const;
};

// Limits of the timing, for all models together: it goes on until both `seconds` and `runs` are reached.
struct TimingLimits {
  double seconds = 0;  // least total time
  int runs = 1;        // least number of runs of each model
  // Once this much time has passed, a few runs of each model suffice.
  double most_seconds = std::numeric_limits<double>::infinity();
};

// One run of a model that was loaded for profiling.
struct ProfiledRun {
  double start_seconds = 0;  // since the first run began
  double seconds = 0;
  std::vector<double> calls;  // by call of the description
};

// Runs the model `runs` times after a warm-up, but starts no further run once `most_seconds` have
// passed (at least one run). Errors: those of Model::run.
Result<std::vector<ProfiledRun>> profile_runs(runtime::Model& model, int runs, uint64_t seed,
                                              const Clock& clock,
                                              double most_seconds = std::numeric_limits<double>::infinity());

// Times the models in turn (A B A B ...) after a warm-up.
Result<std::vector<Timing>> time_interleaved(const std::vector<runtime::Model*>& models,
                                             const TimingLimits& limits, uint64_t seed, const Clock& clock);
// Least time that time_interleaved() takes for this many models that take `model_seconds` each.
double least_timing_seconds(size_t models, double model_seconds, const TimingLimits& limits);

}  // namespace tensorsmith::engine
