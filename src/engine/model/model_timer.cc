#include "engine/model/model_timer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "ir/scalar.h"

namespace tensorsmith::engine {

void ModelBuffers::Free::operator()(std::byte* p) const { std::free(p); }

ModelBuffers::Block ModelBuffers::allocate(int64_t bytes) {
  const size_t rounded = (std::max<int64_t>(bytes, 1) + 63) / 64 * 64;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
  if (!memory) throw std::bad_alloc();
  std::memset(memory, 0, rounded);
  return Block(memory);
}

namespace {

// Fills memory with floats from -1 to 1.
void fill(std::byte* memory, DType dtype, int64_t bytes, Rng& rng) {
  for (int64_t at = 0; at < bytes; at += bytes_of(dtype))
    ir::store_scalar(ir::scalar_float(dtype, static_cast<float>(rng.uniform() * 2 - 1)), memory + at);
}

}  // namespace

ModelBuffers::ModelBuffers(const runtime::Model& model, uint64_t seed) {
  Rng rng(seed);
  for (const auto& info : model.inputs()) {
    inputs_.push_back(allocate(info.bytes()));
    if (is_float(info.dtype)) fill(inputs_.back().get(), info.dtype, info.bytes(), rng);
  }
  for (const auto& info : model.outputs()) outputs_.push_back(allocate(info.bytes()));
}

std::vector<const void*> ModelBuffers::inputs() const {
  std::vector<const void*> out;
  for (const auto& block : inputs_) out.push_back(block.get());
  return out;
}

std::vector<void*> ModelBuffers::outputs() {
  std::vector<void*> out;
  for (const auto& block : outputs_) out.push_back(block.get());
  return out;
}

double Timing::quantile(double q) const {
  if (seconds.empty()) return std::numeric_limits<double>::infinity();
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const double position = q * (sorted.size() - 1);
  const auto low = static_cast<size_t>(position);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (position - low);
}

double Timing::median() const { return quantile(0.5); }

namespace {

constexpr int kWarmUp = 2;
// For slow models, whose times vary less.
constexpr int kFewRuns = 3, kShortWarmUp = 1;
// If one round of all models takes more than this share of the time, it suffices as the warm-up.
constexpr double kLongRound = 0.125;

}  // namespace

Result<std::vector<ProfiledRun>> profile_runs(runtime::Model& model, int runs, uint64_t seed,
                                              const Clock& clock, double most_seconds) {
  ModelBuffers buffers(model, seed);
  const auto inputs = buffers.inputs();
  const auto outputs = buffers.outputs();
  TS_RETURN_IF_ERROR(model.run(inputs, outputs));
  std::vector<ProfiledRun> all;
  const double begin = clock.monotonic_seconds();
  do {
    model.reset_profile();
    const double start = clock.monotonic_seconds();
    TS_RETURN_IF_ERROR(model.run(inputs, outputs));
    ProfiledRun& run = all.emplace_back();
    run.start_seconds = start - begin;
    run.seconds = clock.monotonic_seconds() - start;
    for (const runtime::CallTime& call : model.profile()) run.calls.push_back(call.total_seconds);
  } while (static_cast<int>(all.size()) < runs && clock.monotonic_seconds() - begin < most_seconds);
  return all;
}

Result<std::vector<Timing>> time_interleaved(const std::vector<runtime::Model*>& models,
                                             const TimingLimits& limits, uint64_t seed, const Clock& clock) {
  std::vector<ModelBuffers> buffers;
  for (const runtime::Model* model : models) buffers.emplace_back(*model, seed);
  std::vector<Timing> timings(models.size());
  const double start = clock.monotonic_seconds();
  int warm_up = kWarmUp;
  for (int round = 0;; ++round) {
    for (size_t m = 0; m < models.size(); ++m) {
      const std::vector<const void*> inputs = buffers[m].inputs();
      const std::vector<void*> outputs = buffers[m].outputs();
      const double before = clock.monotonic_seconds();
      TS_RETURN_IF_ERROR(models[m]->run(inputs, outputs));
      const double after = clock.monotonic_seconds();
      // For a GPU, the time on the device only: inputs and outputs may already be on the device.
      const double on_device = models[m]->device_seconds();
      if (round >= warm_up) timings[m].seconds.push_back(on_device > 0 ? on_device : after - before);
    }
    const double elapsed = clock.monotonic_seconds() - start;
    if (round == 0 && elapsed > kLongRound * limits.most_seconds) warm_up = kShortWarmUp;
    const int runs = round + 1 - warm_up;
    if (runs >= limits.runs && elapsed >= limits.seconds) break;
    if (runs >= kFewRuns && elapsed >= limits.most_seconds) break;
  }
  return timings;
}

double least_timing_seconds(size_t models, double model_seconds, const TimingLimits& limits) {
  const double round = models * model_seconds;
  const double all = std::max(limits.seconds, round * (limits.runs + kWarmUp));
  return std::min(all, std::max(limits.most_seconds, round * (kFewRuns + kShortWarmUp)));
}

}  // namespace tensorsmith::engine
