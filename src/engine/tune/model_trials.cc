#include "engine/tune/model_trials.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/device/gpu_device.h"
#include "engine/model/model_timer.h"
#include "engine/model/reference_inputs.h"

namespace tensorsmith::engine {

namespace {

// A schedule replaces that of the first variant if its time is at most this share of the first
// variant's.
constexpr double kClearGain = 0.985;
constexpr int kMinRuns = 8;
// A comparison of slow models may take this many times the given seconds, or at least kLongTrialSeconds,
// and then ends with fewer runs.
constexpr double kTimingSlack = 2, kLongTrialSeconds = 1;

TimingLimits limits_of(double seconds) {
  return {seconds, kMinRuns, std::max(kTimingSlack * seconds, kLongTrialSeconds)};
}

// Returns the largest magnitude of a tensor of floats that is finite; 0 for other types.
double largest_magnitude(const lower::Tensor& tensor) {
  double most = 0;
  for (int64_t i = 0; is_float(tensor.dtype) && i < tensor.num_elements(); ++i)
    if (const double value = std::abs(tensor.at(i).f); std::isfinite(value)) most = std::max(most, value);
  return most;
}

}  // namespace

double ModelTrials::timing_seconds(size_t variants, double model_seconds, double seconds) {
  return least_timing_seconds(variants, model_seconds, limits_of(seconds));
}

Status ModelTrials::add(std::vector<TaskSchedule> schedules) {
  CompileOptions options;
  options.model_name = "trial";
  options.jobs = jobs_;
  options.cache = &cache_;
  runtime::LoadOptions load_options;
  load_options.gpu = gpu_place(device_);
  load_options.threads = device_.compute_units();
  load_options.profile = true;
  Variant variant;
  TS_ASSIGN_OR_RETURN(variant.compiled, compile_in_memory(model_, device_, schedules, options, load_options));
  variant.schedules = std::move(schedules);
  variants_.push_back(std::move(variant));
  return {};
}

int64_t ModelTrials::weights_bytes() const {
  return variants_.front().compiled.model->description().weights_bytes;
}

Status ModelTrials::time(double seconds) {
  std::vector<runtime::Model*> models;
  for (const auto& variant : variants_) {
    models.push_back(variant.compiled.model.get());
    variant.compiled.model->reset_profile();
  }
  TS_ASSIGN_OR_RETURN(auto timings, time_interleaved(models, limits_of(seconds), seed_, clock_));
  for (size_t v = 0; v < variants_.size(); ++v) {
    auto& variant = variants_[v];
    variant.seconds = std::move(timings[v].seconds);
    variant.task_seconds.assign(model_.partition.tasks.size(), 0);
    const auto profile = variant.compiled.model->profile();
    for (size_t c = 0; c < profile.size(); ++c)
      if (const auto task = model_.partition.calls[c].task)
        variant.task_seconds[*task] += model_.partition.calls[c].turns * profile[c].min_seconds;
  }
  return {};
}

double ModelTrials::task_seconds(size_t variant, size_t task) const {
  return variants_[variant].task_seconds[task];
}

double ModelTrials::model_seconds(size_t variant) const {
  return Timing{variants_[variant].seconds}.quantile(0.25);
}

double ModelTrials::spread(size_t variant) const {
  const Timing timing{variants_[variant].seconds};
  return timing.quantile(0.75) / timing.quantile(0.25) - 1;
}

Result<Comparison> ModelTrials::compare_outputs(size_t variant) const {
  const auto inputs = reference_inputs(model_.graph, seed_, Spread::kNarrow);
  runtime::Model& first = *variants_.front().compiled.model;
  TS_ASSIGN_OR_RETURN(const auto expected, run_model(first, inputs));
  TS_ASSIGN_OR_RETURN(const auto got, run_model(*variants_[variant].compiled.model, inputs));
  Comparison worst;
  for (size_t i = 0; i < expected.size(); ++i) {
    Tolerance tolerance;
    tolerance.step = first.outputs()[i].quantization_step;
    tolerance.atol = std::max(tolerance.atol, tolerance.rtol * largest_magnitude(expected[i]));
    Comparison comparison = compare(got[i], expected[i], tolerance);
    if (!comparison.ok) return comparison;
    if (i == 0 || comparison.worst_absolute > worst.worst_absolute) worst = std::move(comparison);
  }
  return worst;
}

std::vector<TaskSchedule> ModelTrials::fastest_by_task(const std::vector<bool>& first_is_usable) const {
  std::vector<TaskSchedule> result = variants_.front().schedules;
  for (size_t t = 0; t < result.size(); ++t) {
    double best = first_is_usable[t] ? kClearGain * variants_.front().task_seconds[t]
                                     : std::numeric_limits<double>::infinity();
    for (size_t v = 1; v < variants_.size(); ++v) {
      if (variants_[v].task_seconds[t] >= best) continue;
      best = variants_[v].task_seconds[t];
      result[t] = variants_[v].schedules[t];
    }
  }
  return result;
}

}  // namespace tensorsmith::engine
