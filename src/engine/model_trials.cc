#include "engine/model_trials.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "engine/model_timer.h"

namespace tensorsmith::engine {

namespace {

namespace fs = std::filesystem;

// A schedule replaces that of the first variant if it takes at most this share of its time.
constexpr double kClearGain = 0.985;
constexpr int kMinRuns = 8;

class RemovedAtEnd {
 public:
  explicit RemovedAtEnd(fs::path path) : path_(std::move(path)) {}
  ~RemovedAtEnd() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

 private:
  fs::path path_;
};

}  // namespace

ModelTrials::ModelTrials(const LoadedModel& model, const target::Device& device, std::string directory,
                         int jobs, uint64_t seed, const Clock& clock)
    : model_(model),
      device_(device),
      directory_(std::move(directory)),
      jobs_(jobs),
      seed_(seed),
      clock_(clock) {}

Status ModelTrials::add(std::vector<TaskSchedule> schedules) {
  // What is there already is not ours to remove.
  std::string directory = directory_;
  std::error_code ignored;
  for (int n = 2; fs::exists(fs::symlink_status(directory, ignored)); ++n)
    directory = directory_ + "-" + std::to_string(n);
  // What is loaded needs its files no longer.
  const RemovedAtEnd cleanup(directory);
  CompileOptions options;
  options.directory = directory;
  options.model_name = "trial";
  options.jobs = jobs_;
  options.cache = &cache_;
  TS_RETURN_IF_ERROR(compile_model(model_, device_, schedules, options));
  return add_compiled(directory, std::move(schedules));
}

Status ModelTrials::add_compiled(const std::string& path, std::vector<TaskSchedule> schedules) {
  runtime::LoadOptions options;
  options.threads = device_.cores;
  options.profile = true;
  options.verify_weights = false;
  Variant variant;
  TS_ASSIGN_OR_RETURN(variant.model, runtime::Model::load(path, options));
  variant.schedules = std::move(schedules);
  variants_.push_back(std::move(variant));
  return {};
}

int64_t ModelTrials::weights_bytes() const { return variants_.front().model->description().weights_bytes; }

Status ModelTrials::time(double seconds) {
  std::vector<runtime::Model*> models;
  for (const auto& variant : variants_) {
    models.push_back(variant.model.get());
    variant.model->reset_profile();
  }
  TS_ASSIGN_OR_RETURN(auto timings, time_interleaved(models, seconds, kMinRuns, seed_, clock_));
  for (size_t v = 0; v < variants_.size(); ++v) {
    auto& variant = variants_[v];
    variant.seconds = std::move(timings[v].seconds);
    variant.task_seconds.assign(model_.partition.tasks.size(), 0);
    const auto profile = variant.model->profile();
    for (size_t c = 0; c < profile.size(); ++c)
      variant.task_seconds[model_.partition.calls[c].task] += profile[c].min_seconds;
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
