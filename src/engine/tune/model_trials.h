// Times compiled variants of one model against each other, task by task. A schedule that wins when
// measured alone, with its data in the caches and the threads awake, need not win in its place in
// the model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/model/compile_model.h"
#include "engine/model/output_check.h"
#include "runtime/model.h"

namespace tensorsmith::engine {

class ModelTrials {
 public:
  // The arguments must outlive this object.
  ModelTrials(const LoadedModel& model, const target::Device& device, const codegen::Backend& backend,
              int jobs, uint64_t seed, const Clock& clock)
      : model_(model), device_(device), jobs_(jobs), seed_(seed), clock_(clock), cache_(backend) {}

  // Compiles one more variant in memory. `schedules` is indexed by task.
  Status add(std::vector<TaskSchedule> schedules);

  // Drops all variants but the first.
  void keep_first() { variants_.erase(variants_.begin() + 1, variants_.end()); }

  const std::vector<TaskSchedule>& first_schedules() const { return variants_.front().schedules; }
  size_t size() const { return variants_.size(); }
  // Bytes of the first variant's weights; other variants differ only in padding.
  int64_t weights_bytes() const;
  BuildCache& cache() { return cache_; }

  // Runs all variants in turn for about `seconds`, at least a few runs each.
  Status time(double seconds);
  // Expected duration of time(seconds) with this many variants of about this latency.
  static double timing_seconds(size_t variants, double model_seconds, double seconds);
  // Seconds of a task in a variant since the last time(): the sum over its calls of the fastest
  // run.
  double task_seconds(size_t variant, size_t task) const;
  // Latency of a variant: the lower quartile of its runs. Disturbances only make a run slower, and
  // on a busy machine most runs are disturbed.
  double model_seconds(size_t variant) const;
  // Relative spread of a variant's runs: the interquartile range over the lower quartile.
  double spread(size_t variant) const;

  // Compares a variant's outputs with those of the first variant, on generated inputs. Rounding errors
  // follow the largest value of an output, so the absolute tolerance does, too. Returns the first
  // comparison that is not ok, else that with the largest difference.
  Result<Comparison> compare_outputs(size_t variant) const;

  // Returns for each task the schedule of the variant where it is fastest. The first variant's
  // schedule is kept unless another is faster by more than the noise of such timings, or
  // `first_is_usable` is false.
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
