#include "lab/profile_programs.h"

#include <algorithm>
#include <map>

#include "codegen/backend.h"
#include "engine/device/measured_device.h"
#include "ir/text.h"
#include "lab/nsight_compute.h"
#include "measure/profile/perf_events.h"
#include "measure/profile/time_kernel.h"
#include "record/ncu_csv.h"

namespace tensorsmith::lab {
namespace {

constexpr size_t kMostProblems = 20;
// Number of profiles stored at a time.
constexpr size_t kProfiledAtOnce = 32;

// Returns the records to profile, by task, the fastest first.
Result<std::map<std::string, std::vector<record::Record>>> chosen_records(record::Database& database,
                                                                          const ProfileOptions& options) {
  std::map<std::string, std::vector<record::Record>> out;
  const std::string device = options.device.key();
  TS_RETURN_IF_ERROR(database.for_each([&](const record::Record& record) -> Status {
    if (!record.result.ok() || record.device_key != device) return {};
    if (options.tasks && options.tasks->count(record.task_key) == 0) return {};
    out[record.task_key].push_back(record);
    return {};
  }));
  for (auto& [task, records] : out) {
    std::stable_sort(records.begin(), records.end(), [](const auto& a, const auto& b) {
      return a.result.best_estimate() < b.result.best_estimate();
    });
    if (options.per_task > 0 && static_cast<int64_t>(records.size()) > options.per_task)
      records.resize(options.per_task);
  }
  return out;
}

// Programs per run of Nsight Compute; their counters are stored after each run.
constexpr size_t kNsightComputeBatch = 16;

Status profile_by_nsight_compute(record::Database& database, const ProfileOptions& options,
                                 const std::vector<std::string>& keys, ProfileReport& report,
                                 const ProfileProgress& progress, int64_t programs,
                                 const std::atomic<bool>& cancel) {
  TS_ASSIGN_OR_RETURN(const std::string ncu, find_nsight_compute());
  for (size_t begin = 0; begin < keys.size() && !cancel; begin += kNsightComputeBatch) {
    const std::vector<std::string> batch(keys.begin() + begin,
                                         keys.begin() + std::min(begin + kNsightComputeBatch, keys.size()));
    TS_ASSIGN_OR_RETURN(const NsightComputeRun run,
                        run_nsight_compute(ncu, options.database_path, options.device, batch));
    std::vector<record::Profile> profiles;
    for (const auto& [key, counters] : run.counters)
      profiles.push_back({key, record::kNcuProfiler, counters});
    TS_RETURN_IF_ERROR(database.add(profiles));
    report.profiled += static_cast<int64_t>(profiles.size());
    report.failed += static_cast<int64_t>(batch.size() - profiles.size());
    for (const std::string& problem : run.problems)
      if (report.problems.size() < kMostProblems) report.problems.push_back(problem);
    if (progress) progress(report, programs);
  }
  return {};
}

class Profiling {
 public:
  Profiling(record::Database& database, const ProfileOptions& options)
      : database_(database), options_(options) {}

  Status read_known() {
    return database_.for_each_profile(options_.profiler, [&](const record::Profile& profile) -> Status {
      known_.emplace(profile.record_key, profile.counters);
      return {};
    });
  }
  Status add(const record::TaskInfo& task, const ir::Workload& workload, const record::Record& record) {
    const auto known = known_.find(record.key());
    if (known != known_.end() && !options_.again) {
      ++report.known;
      return {};
    }
    auto counters = profile(workload, record);
    if (!counters.ok()) {
      ++report.failed;
      if (report.problems.size() < kMostProblems)
        report.problems.push_back(task.name + ": " + counters.error().message());
      return {};
    }
    ++report.profiled;
    // Other programs on the machine can only make a time longer.
    if (options_.profiler == measure::kTiming && known != known_.end())
      (*counters)["seconds"] = std::min((*counters)["seconds"], known->second["seconds"]);
    profiles_.push_back({record.key(), options_.profiler, std::move(*counters)});
    return profiles_.size() < kProfiledAtOnce ? Status() : flush();
  }
  // Appends the keys of records that have no such profile yet.
  void add_unknown(const std::vector<record::Record>& records, std::vector<std::string>& keys) {
    for (const record::Record& record : records) {
      if (known_.contains(record.key()) && !options_.again)
        ++report.known;
      else
        keys.push_back(record.key());
    }
  }
  Status flush() {
    Status status = profiles_.empty() ? Status() : database_.add(profiles_);
    profiles_.clear();
    return status;
  }

  ProfileReport report;

 private:
  Result<std::map<std::string, double>> profile(const ir::Workload& workload,
                                                const record::Record& record) const {
    TS_ASSIGN_OR_RETURN(const sched::Trace trace, sched::parse_trace(record.trace));
    if (options_.profiler == measure::kTiming)
      return measure::time_kernel(workload, trace, options_.device, codegen::default_backend(),
                                  options_.simulation.most_seconds);
    if (options_.profiler == measure::kPerfEvents)
      return measure::count_events(workload, trace, options_.device, codegen::default_backend(),
                                   options_.simulation.most_seconds);
    return measure::simulate(workload, trace, options_.device, codegen::default_backend(),
                             options_.simulation);
  }

  record::Database& database_;
  const ProfileOptions& options_;
  std::map<std::string, std::map<std::string, double>> known_;  // counters by record key
  std::vector<record::Profile> profiles_;
};

}  // namespace

Result<ProfileReport> profile_programs(record::Database& database, const ProfileOptions& options,
                                       const Clock& clock, const ProfileProgress& progress,
                                       const std::atomic<bool>& cancel) {
  const bool on_gpu = options.profiler == record::kNcuProfiler;
  if (!on_gpu && !engine::is_local(options.device))
    return Error{ErrorCode::kUnsupported, "device " + options.device.name,
                 "cannot be profiled: a program must run on this machine for that; use local, a variant of "
                 "it (local:isa=avx2), or cuda"};
  if (options.profiler == measure::kPerfEvents) TS_RETURN_IF_ERROR(measure::check_perf_events());
  const double start = clock.monotonic_seconds();
  TS_ASSIGN_OR_RETURN(const auto chosen, chosen_records(database, options));
  int64_t programs = 0;
  for (const auto& [task, records] : chosen) programs += static_cast<int64_t>(records.size());
  TS_ASSIGN_OR_RETURN(const auto tasks, database.tasks());
  Profiling profiling(database, options);
  TS_RETURN_IF_ERROR(profiling.read_known());
  std::vector<std::string> of_gpu;
  for (const record::TaskInfo& task : tasks) {
    const auto records = chosen.find(task.key);
    if (records == chosen.end()) continue;
    if (on_gpu) {
      profiling.add_unknown(records->second, of_gpu);
      continue;
    }
    TS_ASSIGN_OR_RETURN(const ir::Workload workload, ir::parse_workload(task.text));
    for (const record::Record& record : records->second) {
      if (cancel) break;
      TS_RETURN_IF_ERROR(profiling.add(task, workload, record));
      if (progress) progress(profiling.report, programs);
    }
  }
  TS_RETURN_IF_ERROR(profiling.flush());
  if (!of_gpu.empty())
    TS_RETURN_IF_ERROR(
        profile_by_nsight_compute(database, options, of_gpu, profiling.report, progress, programs, cancel));
  profiling.report.seconds = clock.monotonic_seconds() - start;
  return profiling.report;
}

}  // namespace tensorsmith::lab
