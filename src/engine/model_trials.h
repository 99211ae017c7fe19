// Compiled variants of one model, timed against each other task by task: a schedule that wins alone, with its
// data in the caches and the threads awake, need not win in its place in the model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/compile_model.h"
#include "runtime/model.h"

namespace tensorsmith::engine {

class ModelTrials {
 public:
  // The arguments outlive this object.
  ModelTrials(const LoadedModel& model, const target::Device& device, int jobs, uint64_t seed,
              const Clock& clock)
      : model_(model),
        device_(device),
        jobs_(jobs),
        seed_(seed),
        clock_(clock),
        cache_(codegen::backend_for(device)) {}

  // Compiles one more variant, in memory. schedules: by task.
  Status add(std::vector<TaskSchedule> schedules);

  // Forgets all variants but the first.
  void keep_first() { variants_.erase(variants_.begin() + 1, variants_.end()); }

  const std::vector<TaskSchedule>& first_schedules() const { return variants_.front().schedules; }
  size_t size() const { return variants_.size(); }
  // Of the first variant; the others differ by padding.
  int64_t weights_bytes() const;
  BuildCache& cache() { return cache_; }

  // Runs all variants in turn for about `seconds`, at least a few runs each.
  Status time(double seconds);
  // What time() takes with so many variants of about this latency.
  static double timing_seconds(size_t variants, double model_seconds, double seconds);
  // Since time(): of a task in a variant, the sum over its calls of the fastest run.
  double task_seconds(size_t variant, size_t task) const;
  // Latency of a variant: the lower quartile of the runs. What disturbs a run only makes it slower, and on a
  // busy machine most runs are disturbed.
  double model_seconds(size_t variant) const;
  // How much the runs of a variant differ: the distance of their quartiles over the lower one.
  double spread(size_t variant) const;

  // Each task as in the variant where it is fastest; as in the first one, unless another is faster by more
  // than the noise of such timings, or the first one's program is not to be used.
  std::vector<TaskSchedule> fastest_by_task(const std::vector<bool>& first_is_usable) const;

 private:
  struct Variant {
    std::vector<TaskSchedule> schedules;
    ModelInMemory compiled;
    std::vector<double> seconds;       // by run
    std::vector<double> task_seconds;  // by task
  };

  const LoadedModel& model_;
  const target::Device& device_;
  const int jobs_;
  const uint64_t seed_;
  const Clock& clock_;
  BuildCache cache_;
  std::vector<Variant> variants_;
};

}  // namespace tensorsmith::engine
