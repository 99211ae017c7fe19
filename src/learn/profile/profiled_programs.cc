#include "learn/profile/profiled_programs.h"

#include <algorithm>

#include "base/hash.h"
#include "feature/profile_schema_gpu.h"
#include "ir/text.h"
#include "learn/latency/held_out.h"
#include "learn/latency/kinds.h"
#include "learn/latency/queries.h"
#include "learn/profile/static_row.h"
#include "record/database.h"
#include "record/ncu_csv.h"

namespace tensorsmith::learn {
namespace {

struct Found {
  record::Record record;
  std::map<std::string, double> counters;
};

class Reader {
 public:
  Reader(std::string profiler, std::string timing)
      : profiler_(std::move(profiler)), timing_(std::move(timing)) {
    out_.profiler = profiler_;
  }

  Status read(const std::string& path) {
    TS_ASSIGN_OR_RETURN(auto database, record::Database::open_read_only(path));
    TS_ASSIGN_OR_RETURN(const auto tasks, database->tasks());
    for (const auto& task : tasks) tasks_.emplace(task.key, task);
    TS_ASSIGN_OR_RETURN(const auto devices, database->devices());
    for (const auto& [key, device] : devices) devices_.emplace(key, device);
    TS_RETURN_IF_ERROR(database->for_each_profile(timing_, [&](const record::Profile& profile) -> Status {
      const auto seconds = profile.counters.find("seconds");
      if (seconds != profile.counters.end() && seconds->second > 0)
        times_[profile.record_key] = seconds->second;
      return {};
    }));
    std::map<std::string, std::map<std::string, double>> profiles;
    TS_RETURN_IF_ERROR(database->for_each_profile(profiler_, [&](const record::Profile& profile) -> Status {
      profiles[profile.record_key] = profile.counters;
      return {};
    }));
    return database->for_each([&](const record::Record& record) -> Status {
      const auto at = profiles.find(record.key());
      if (record.result.ok() && at != profiles.end()) found_.emplace(record.key(), Found{record, at->second});
      return {};
    });
  }

  Result<ProfiledPrograms> finish() {
    if (found_.empty())
      return Error{
          ErrorCode::kNotFound, "profiles",
          "there are no profiles by " + profiler_ + "; run `tensorsmith profile` on the database first"};
    const std::vector<const Found*> order = usable();
    if (order.empty()) {
      std::string reasons;
      for (const std::string& line : left_out_lines()) reasons += (reasons.empty() ? "" : "; ") + line;
      return Error{ErrorCode::kNotFound, "profiles", reasons};
    }
    // Adds all workloads first, since the caches refer to them by address.
    for (const Found* found : order) {
      const auto task = tasks_.find(found->record.task_key);
      if (task == tasks_.end() || !numbers_.emplace(found->record.task_key, out_.tasks.size()).second)
        continue;
      out_.tasks.push_back({task->second.key, task->second.name, task->second.text, task->second.flops, {}});
    }
    QuerySummarizer summarizer;
    for (const Found* found : order) {
      auto program = make(*found, summarizer);
      if (program.ok()) {
        out_.programs.push_back(std::move(*program));
      } else {
        ++left_out_[program.error().reason];
      }
    }
    out_.left_out = left_out_lines();
    return std::move(out_);
  }

 private:
  // Returns the programs of the device with the most of them, and counts those that cannot be used.
  std::vector<const Found*> usable() {
    std::map<std::string, std::vector<const Found*>> by_device;
    for (const auto& [key, found] : found_) {
      if (found.record.settings.flush_cache) {
        ++left_out_["they were measured with emptied caches (--flush-cache)"];
      } else if (found.record.result.stopped_early && times_.count(key) == 0) {
        // A single reading that made a candidate look hopeless may have been disturbed.
        ++left_out_
            ["they were timed once only, because they looked slow; `tensorsmith profile --profiler timing` "
             "measures their times again"];
      } else if (devices_.count(found.record.device_key) == 0) {
        ++left_out_["their database does not describe their device"];
      } else {
        by_device[found.record.device_key].push_back(&found);
      }
    }
    std::vector<const Found*> most;
    for (const auto& [key, programs] : by_device) {
      if (programs.size() <= most.size()) continue;
      most = programs;
      out_.device = devices_.at(key);
    }
    for (const auto& [key, programs] : by_device)
      if (key != most.front()->record.device_key)
        left_out_["they ran on another device than most, which ran on " + out_.device.name] +=
            std::ssize(programs);
    return most;
  }

  std::vector<std::string> left_out_lines() const {
    std::vector<std::string> lines;
    lines.reserve(left_out_.size());
    for (const auto& [reason, count] : left_out_)
      lines.push_back(std::to_string(count) + " of " + std::to_string(found_.size()) +
                      " profiled programs are left out: " + reason);
    return lines;
  }

  Result<ProfiledProgram> make(const Found& found, QuerySummarizer& summarizer) const {
    const auto number = numbers_.find(found.record.task_key);
    if (number == numbers_.end()) return Error{ErrorCode::kCorrupt, "", "its task is not in the database"};
    const StoredWorkload& task = out_.tasks[number->second];
    ProfiledProgram out;
    out.task = number->second;
    out.record = found.record.key();
    const auto timed = times_.find(out.record);
    out.seconds =
        timed != times_.end() ? timed->second : *std::ranges::min_element(found.record.result.seconds);
    out.counters = found.counters;
    const bool gpu = profiler_ == record::kNcuProfiler;
    TS_ASSIGN_OR_RETURN(out.profile, gpu ? feature::gpu_profile_row(found.counters, task.flops)
                                         : feature::cpu_profile_row(found.counters, task.flops));
    TS_ASSIGN_OR_RETURN(const ir::Workload workload, ir::parse_workload(task.text));
    TS_ASSIGN_OR_RETURN(out.trace, sched::parse_trace(found.record.trace));
    TS_ASSIGN_OR_RETURN(const auto schedule, sched::replay(workload, out.trace));
    TS_ASSIGN_OR_RETURN(out.leaves,
                        feature::extract_leaves(schedule, {.cacheline_bytes = out_.device.cacheline_bytes}));
    out.per_store = out.leaves.per_store();
    const auto summary = summarizer.summarize(
        {.workload = &task, .leaves = &out.leaves, .trace = &out.trace, .device = &out_.device});
    if (summary.kind == feature::ProgramKind::kCpuNests) {
      TS_ASSIGN_OR_RETURN(out.summary, static_row(summary));
    }
    return out;
  }

  std::string profiler_, timing_;
  std::map<std::string, double> times_;  // measured again; by record key
  ProfiledPrograms out_;
  std::map<std::string, record::TaskInfo> tasks_;
  std::map<std::string, target::Device> devices_;
  std::map<std::string, Found> found_;       // profiled programs, by record key
  std::map<std::string, int64_t> left_out_;  // number of profiled programs, by reason
  std::map<std::string, size_t> numbers_;    // of tasks, by key
};

}  // namespace

std::vector<size_t> ProfiledPrograms::of_task(size_t task) const {
  std::vector<size_t> out;
  for (size_t i = 0; i < programs.size(); ++i) {
    if (programs[i].task == task) out.push_back(i);
  }
  return out;
}

ProgramQuery ProfiledPrograms::query(size_t program) const {
  const ProfiledProgram& p = programs[program];
  return {&tasks[p.task], &p.leaves, &p.trace, &device, &p.per_store, &p.profile};
}

void ProfiledPrograms::keep(const std::function<bool(const StoredWorkload&)>& wanted) {
  std::vector<StoredWorkload> kept;
  std::vector<size_t> numbers(tasks.size(), tasks.size());
  for (size_t t = 0; t < tasks.size(); ++t) {
    if (!wanted(tasks[t])) continue;
    numbers[t] = kept.size();
    kept.push_back(std::move(tasks[t]));
  }
  std::erase_if(programs, [&](const auto& program) { return numbers[program.task] == tasks.size(); });
  for (ProfiledProgram& program : programs) program.task = numbers[program.task];
  tasks = std::move(kept);
}

ModelCard card_of_profiles(const ProfiledPrograms& data, const std::string& kind, uint64_t seed) {
  ModelCard card = untrained_card(kind, seed);
  card.devices = {data.device.name};
  card.seen = {seen_device(data.device)};
  for (const StoredWorkload& task : data.tasks) card.workloads.push_back(task.key);
  std::sort(card.workloads.begin(), card.workloads.end());
  Hasher hash;
  for (const ProfiledProgram& program : data.programs) hash.add(program.record);
  card.store_hash = hash.hex128();
  card.records = std::ssize(data.programs);
  card.metrics = "{}";
  return card;
}

Error needs_profiles(const std::string& kind) {
  return {ErrorCode::kInvalidArgument, "model '" + kind + "'",
          "is trained on profiles, which stores do not contain; use --features profile and --from-db"};
}

Result<ProfiledPrograms> read_profiled_programs(const std::vector<std::string>& databases,
                                                const std::string& profiler, const std::string& timing) {
  Reader reader(profiler, timing);
  for (const std::string& path : databases) TS_RETURN_IF_ERROR(reader.read(path));
  return reader.finish();
}

}  // namespace tensorsmith::learn
