#include "measure/device_run.h"

#include <algorithm>
#include <cmath>

#include "ir/text.h"
#include "measure/timing.h"
#include "measure/wire.h"

namespace tensorsmith::measure {
namespace {

using record::MeasureResult;
using record::Outcome;
using runtime::GpuSpan;

// A timed sequence is extended in order to use all sets, but at most to this many times
// min_repeat_s.
constexpr double kLongestRotation = 20;
// Most launches of one sequence.
constexpr int64_t kMaxLaunches = 2000;
// Most bytes of constants, over all sets, that are kept for other candidates.
constexpr int64_t kMaxConstantBytes = int64_t{1} << 30;
constexpr int64_t kFenceBytes = 512;
// NaN as a float, so that reads of unwritten memory show in the output.
constexpr unsigned char kUnwritten = 0xFF;

MeasureResult failure(const Error& error) {
  switch (error.code) {
    case ErrorCode::kResourceExhausted:
      return failure(Outcome::kMemoryLimit, error.message());
    case ErrorCode::kUnsupported:
    case ErrorCode::kCorrupt:
    case ErrorCode::kNotFound:
    case ErrorCode::kInvalidArgument:
      return failure(Outcome::kBuildError, error.message());
    default:
      return failure(Outcome::kCrash, error.message());
  }
}

std::string key_of(const lower::PreparedConstant& constant) {
  WireWriter w;
  w.add<uint64_t>(constant.input);
  w.add_text(constant.transform ? ir::print(*constant.transform) : "");
  if (constant.layout) {
    for (const auto& d : *constant.layout) {
      w.add<int32_t>(d.dim);
      w.add(d.divisor);
      w.add(d.extent);
    }
  }
  return {w.bytes().begin(), w.bytes().end()};
}

// A candidate with all resources for its runs.
class DeviceCandidate {
 public:
  DeviceCandidate(runtime::Gpu& gpu, DeviceTask& task, const RunRequest& request)
      : gpu_(gpu), task_(task), request_(request) {}

  Status prepare(DeviceConstants& constants);
  // Returns a sequence of runs on successive sets, beginning with set 0.
  Result<std::unique_ptr<runtime::GpuSequence>> sequence(int64_t runs) const;
  // Returns what is wrong with the set or the workspace, if anything.
  Result<std::optional<std::string>> check(int set);

 private:
  runtime::Gpu& gpu_;
  DeviceTask& task_;
  const RunRequest& request_;
  std::unique_ptr<runtime::GpuModule> module_;
  std::unique_ptr<runtime::GpuMemory> workspace_;
  int64_t workspace_bytes_ = 0;
  std::vector<std::vector<GpuSpan>> buffers_;  // by set
};

Status DeviceCandidate::prepare(DeviceConstants& constants) {
  TS_ASSIGN_OR_RETURN(module_, gpu_.load(request_.object));
  for (int set = 0; set < task_.sets(); ++set) buffers_.push_back(task_.buffers(set));
  for (const auto& constant : request_.prepared) {
    TS_ASSIGN_OR_RETURN(const std::vector<GpuSpan> copies, constants.get(constant));
    for (size_t set = 0; set < buffers_.size(); ++set) buffers_[set][constant.input] = copies[set];
  }
  workspace_bytes_ = gpu_.workspace_bytes(request_.launches, request_.shared_workspace_bytes);
  TS_ASSIGN_OR_RETURN(workspace_, gpu_.allocate(workspace_bytes_ + kFenceBytes));
  return gpu_.fill(workspace_->all(), kUnwritten);
}

Result<std::unique_ptr<runtime::GpuSequence>> DeviceCandidate::sequence(int64_t runs) const {
  TS_ASSIGN_OR_RETURN(auto sequence, gpu_.make_sequence());
  const GpuSpan workspace = {workspace_.get(), 0, workspace_bytes_};
  for (int64_t run = 0; run < runs; ++run) {
    const auto& buffers = buffers_[run % buffers_.size()];
    TS_RETURN_IF_ERROR(sequence->add(*module_, request_.launches, buffers, workspace));
  }
  return sequence;
}

Result<std::optional<std::string>> DeviceCandidate::check(int set) {
  std::vector<unsigned char> fence(kFenceBytes);
  TS_RETURN_IF_ERROR(gpu_.copy_out({workspace_.get(), workspace_bytes_, kFenceBytes}, fence.data()));
  if (!std::all_of(fence.begin(), fence.end(), [](unsigned char byte) { return byte == kUnwritten; }))
    return std::optional<std::string>("writes outside of its workspace");
  return task_.check(set);
}

struct TimedRuns {
  Timing timing;
  bool ran = false;  // at least once
};

// Times repeats of a sequence of `runs` runs.
Result<TimedRuns> time_runs(runtime::Gpu& gpu, const DeviceCandidate& candidate, const TimingOptions& options,
                            int64_t runs, double run_seconds) {
  TS_ASSIGN_OR_RETURN(const auto sequence, candidate.sequence(runs));
  Status status;
  double device_seconds = 0;
  bool ran = false;
  TimingHooks hooks;
  hooks.run = [&] {
    if (!status.ok()) return;
    ran = true;
    const auto seconds = sequence->time();
    if (seconds.ok()) {
      device_seconds += *seconds;
    } else {
      status = seconds.error();
    }
  };
  // Larger than the cache, so that filling it evicts the data of earlier runs.
  std::unique_ptr<runtime::GpuMemory> flushed;
  if (options.flush_cache) {
    TS_ASSIGN_OR_RETURN(flushed, gpu.allocate(2 * std::max<int64_t>(gpu.properties().l2_bytes, 1 << 20)));
    hooks.flush = [&] {
      if (status.ok()) status = gpu.fill(flushed->all(), 1);
    };
  }
  hooks.now = raw_seconds;
  hooks.on_core = [&] { return device_seconds; };
  TimingOptions scaled = options;
  scaled.best_seconds *= runs;
  Timing timing = measure_time(scaled, hooks, run_seconds * runs);
  if (!status.ok()) return std::move(status).error();
  for (double& seconds : timing.seconds) seconds /= runs;
  timing.runs_per_repeat *= runs;
  return TimedRuns{std::move(timing), ran};
}

// Returns enough runs to fill a repeat and to use all sets.
int64_t runs_of_sequence(const RunRequest& request, int sets, double run_seconds) {
  if (request.timing.flush_cache) return 1;
  const double least = request.timing.min_repeat_s;
  const double wanted = std::max(std::ceil(least / run_seconds), static_cast<double>(sets));
  const double most = std::max(std::ceil(kLongestRotation * least / run_seconds), 1.0);
  const int64_t launches = std::max<size_t>(request.launches.size(), 1);
  const int64_t fit = std::max<int64_t>(kMaxLaunches / launches, 1);
  return std::clamp<int64_t>(static_cast<int64_t>(std::min({wanted, most, 1e6})), 1, fit);
}

// A short single run mostly consists of the launch, so it is not judged.
bool is_hopeless(const TimingOptions& options, double seconds) {
  return options.hopeless_factor > 0 && options.best_seconds > 0 && seconds >= options.min_repeat_s &&
         seconds > options.hopeless_factor * options.best_seconds;
}

Result<MeasureResult> run_candidate(runtime::Gpu& gpu, DeviceTask& task, DeviceConstants& constants,
                                    const RunRequest& request) {
  DeviceCandidate candidate(gpu, task, request);
  TS_RETURN_IF_ERROR(candidate.prepare(constants));
  TS_ASSIGN_OR_RETURN(const auto once, candidate.sequence(1));
  // Checking the last set detects a kernel that always writes to the set of its first run.
  std::vector<int> looked_at = {0};
  if (task.sets() > 1) looked_at.push_back(task.sets() - 1);
  for (const int set : looked_at) TS_RETURN_IF_ERROR(task.reset(set));
  TS_RETURN_IF_ERROR(once->time());
  TS_ASSIGN_OR_RETURN(std::optional<std::string> wrong, candidate.check(0));
  if (wrong) return failure(Outcome::kWrongOutput, *wrong);
  // The first run may include compiling the kernel or loading it to the device.
  TS_ASSIGN_OR_RETURN(const double measured, once->time());
  const double run_seconds = std::max(measured, 1e-9);

  MeasureResult result;
  Timing timing{{run_seconds}, 1, true};
  int64_t runs = 1;
  if (!is_hopeless(request.timing, run_seconds)) {
    runs = runs_of_sequence(request, task.sets(), run_seconds);
    task.run_begins();
    TS_ASSIGN_OR_RETURN(TimedRuns timed, time_runs(gpu, candidate, request.timing, runs, run_seconds));
    timing = std::move(timed.timing);
    // The timing was given up after its first run, so the other sets were not written.
    if (!timed.ran) runs = 1;
  }
  for (const int set : looked_at) {
    if (set >= runs) continue;
    TS_ASSIGN_OR_RETURN(wrong, candidate.check(set));
    if (wrong)
      return failure(Outcome::kWrongOutput,
                     "correct in the first run, wrong after " +
                         std::to_string(timing.seconds.size() * timing.runs_per_repeat) + " runs: " + *wrong);
  }
  result.seconds = std::move(timing.seconds);
  result.runs_per_repeat = timing.runs_per_repeat;
  result.stopped_early = timing.stopped_early;
  return result;
}

}  // namespace

Result<DeviceConstants::Copies> DeviceConstants::make(const lower::PreparedConstant& constant) {
  if (constant.input >= task_.spec().inputs.size())
    return Error{ErrorCode::kInvalidArgument, "", "a prepared input does not exist"};
  const TensorSpec& spec = task_.spec().inputs[constant.input];
  const std::byte* data = task_.input(constant.input);
  const lower::Tensor source = {spec.dtype, spec.shape, std::vector<std::byte>(data, data + spec.bytes())};
  TS_ASSIGN_OR_RETURN(const lower::Tensor prepared, lower::prepare(constant, source));
  Copies copies;
  for (int set = 0; set < task_.sets(); ++set) {
    TS_ASSIGN_OR_RETURN(auto memory, gpu_.allocate(std::ssize(prepared.data)));
    TS_RETURN_IF_ERROR(gpu_.copy_in(memory->all(), prepared.data.data()));
    bytes_ += memory->bytes();
    copies.push_back(std::move(memory));
  }
  return copies;
}

void DeviceConstants::drop_if_large() {
  if (bytes_ <= kMaxConstantBytes) return;
  made_.clear();
  bytes_ = 0;
}

Result<std::vector<GpuSpan>> DeviceConstants::get(const lower::PreparedConstant& constant) {
  const std::string key = key_of(constant);
  auto found = made_.find(key);
  if (found == made_.end()) {
    TS_ASSIGN_OR_RETURN(Copies copies, make(constant));
    found = made_.emplace(key, std::move(copies)).first;
  }
  std::vector<GpuSpan> spans;
  for (const auto& memory : found->second) spans.push_back(memory->all());
  return spans;
}

MeasureResult run_reference_on_device(runtime::Gpu& gpu, DeviceTask& task, DeviceConstants& constants,
                                      const RunRequest& request) {
  const auto run = [&]() -> Result<double> {
    DeviceCandidate candidate(gpu, task, request);
    TS_RETURN_IF_ERROR(candidate.prepare(constants));
    TS_ASSIGN_OR_RETURN(const auto once, candidate.sequence(1));
    return once->time();
  };
  const double start = raw_seconds();
  const auto seconds = run();
  if (!seconds.ok()) return failure(seconds.error());
  MeasureResult result;
  result.seconds = {*seconds};
  result.runs_per_repeat = 1;
  result.measure_seconds = raw_seconds() - start;
  return result;
}

MeasureResult run_on_device(runtime::Gpu& gpu, DeviceTask& task, DeviceConstants& constants,
                            const RunRequest& request) {
  const double start = raw_seconds();
  if (request.launches.empty()) return failure(Outcome::kBuildError, "the program launches no kernel");
  // Some drivers abort the process if they get no memory.
  if (request.shared_workspace_bytes > task.spec().memory_limit_bytes) {
    return failure(Outcome::kMemoryLimit,
                   "the program needs a workspace of " + std::to_string(request.shared_workspace_bytes) +
                       " bytes; the limit is " + std::to_string(task.spec().memory_limit_bytes));
  }
  constants.drop_if_large();
  auto result = run_candidate(gpu, task, constants, request);
  if (!result.ok()) return failure(result.error());
  result->measure_seconds = raw_seconds() - start;
  return std::move(result).value();
}

}  // namespace tensorsmith::measure
