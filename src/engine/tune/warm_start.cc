#include "engine/tune/warm_start.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "ir/text.h"
#include "record/jsonl.h"
#include "sched/trace_traits.h"
#include "search/kernel_class.h"
#include "search/pipeline.h"
#include "search/plausible.h"

namespace tensorsmith::engine {
namespace {

// Number of fast programs kept per task and device.
constexpr size_t kKept = 3;
// Number of nearest tasks of a class that are used; each one needs a design space.
constexpr size_t kNearest = 6;
// Distances, in units of shape_distance, of a device with another vector width or number of cores.
constexpr double kOtherVectors = 2, kOtherCores = 1;

double device_distance(const target::Device& from, const target::Device& to) {
  return (from.register_bytes() != to.register_bytes() ? kOtherVectors : 0) +
         (from.compute_units() != to.compute_units() ? kOtherCores : 0);
}

}  // namespace

Status WarmStart::add_file(const std::string& path) {
  if (record::is_database_file(path)) {
    TS_ASSIGN_OR_RETURN(const auto database, record::Database::open_read_only(path));
    return add_database(*database, record::shown_database(path));
  }
  TS_RETURN_IF_ERROR(record::check_jsonl_file(path));
  TS_ASSIGN_OR_RETURN(const auto database, record::Database::open(":memory:"));
  TS_ASSIGN_OR_RETURN([[maybe_unused]] const auto report, database->import_jsonl(path));
  return add_database(*database, path);
}

Status WarmStart::add_database(record::Database& database, const std::string& name) {
  const size_t file = files_.size();
  files_.push_back(name);
  TS_ASSIGN_OR_RETURN(const auto devices, database.devices());
  for (const auto& [key, device] : devices) devices_.emplace(key, device);
  TS_ASSIGN_OR_RETURN(const auto tasks, database.tasks());
  std::map<std::string, const record::TaskInfo*> infos;
  for (const auto& task : tasks) infos[task.key] = &task;
  TS_RETURN_IF_ERROR(database.for_each([&](const record::Record& record) -> Status {
    const auto device = devices_.find(record.device_key);
    const auto info = infos.find(record.task_key);
    if (!record.result.ok() || device == devices_.end() || info == infos.end()) return {};
    const double seconds = record.result.best_estimate();
    const double least = search::implausible_below(info->second->flops, 0, device->second);
    if (!search::is_plausible(record.result, least)) return {};
    KnownTask& task = programs_[record.task_key];
    if (task.name.empty()) {
      task.name = info->second->name;
      task.text = info->second->text;
      task.flops = info->second->flops;
    }
    if (record.candidate.reason == record::Reason::kDefault) {
      const auto [known, fresh] = task.default_seconds.emplace(record.device_key, seconds);
      if (!fresh) known->second = std::min(known->second, seconds);
    }
    if (!record.candidate.point) return {};
    // Keeps the fastest few programs of this device, sorted by time.
    const auto place = std::find_if(task.programs.begin(), task.programs.end(),
                                    [&](const KnownProgram& p) { return p.seconds > seconds; });
    task.programs.insert(
        place, {search::from_point(*record.candidate.point), record.trace, record.device_key, seconds, file});
    size_t of_device = 0;
    std::erase_if(task.programs, [&](const KnownProgram& p) {
      return p.device_key == record.device_key && of_device++ >= kKept;
    });
    return {};
  }));
  for (auto entry = programs_.begin(); entry != programs_.end();) {
    KnownTask& task = entry->second;
    if (!task.workload) {
      auto workload = ir::parse_workload(task.text);
      if (!workload.ok() || task.programs.empty()) {
        entry = programs_.erase(entry);
        continue;
      }
      task.workload = std::move(workload).value();
      task.kernel_class = search::kernel_class(*task.workload);
    }
    ++entry;
  }
  return {};
}

void WarmStart::forget(const std::set<std::string>& task_keys) {
  for (const std::string& key : task_keys) programs_.erase(key);
}

size_t WarmStart::programs_of(const std::string& task_key) const {
  const auto found = programs_.find(task_key);
  return found == programs_.end() ? 0 : found->second.programs.size();
}

std::vector<std::string> WarmStart::tasks_of_class(uint64_t kernel_class) const {
  std::vector<std::string> keys;
  for (const auto& [key, task] : programs_)
    if (task.kernel_class == kernel_class) keys.push_back(key);
  return keys;
}

std::optional<double> WarmStart::speedup_of(const std::string& task_key) const {
  const auto found = programs_.find(task_key);
  if (found == programs_.end()) return std::nullopt;
  for (const KnownProgram& program : found->second.programs) {
    const auto untuned = found->second.default_seconds.find(program.device_key);
    if (untuned != found->second.default_seconds.end()) return untuned->second / program.seconds;
  }
  return std::nullopt;
}

std::shared_ptr<const space::DesignSpace> WarmStart::space_of(const std::string& task_key,
                                                              const std::string& device_key) const {
  const std::pair key(task_key, device_key);
  {
    const std::lock_guard lock(spaces_->mutex);
    if (const auto made = spaces_->made.find(key); made != spaces_->made.end()) return made->second;
  }
  const target::Device& device = devices_.at(device_key);
  const auto space = space::DesignSpace::build(*programs_.at(task_key).workload, device, {});
  auto shared = space.ok() ? std::make_shared<const space::DesignSpace>(*space) : nullptr;
  const std::lock_guard lock(spaces_->mutex);
  return spaces_->made.emplace(key, std::move(shared)).first->second;
}

std::optional<space::Candidate> WarmStart::adapt(const std::string& task_key, const KnownProgram& program,
                                                 const space::DesignSpace& space) const {
  const auto source = space_of(task_key, program.device_key);
  if (source == nullptr) return std::nullopt;
  const auto trace = source->to_trace(program.candidate);
  if (!trace.ok() || sched::print(*trace) != program.trace) return std::nullopt;
  auto candidate = space.rescale(*source, program.candidate);
  if (!candidate.ok()) return std::nullopt;
  return std::move(candidate).value();
}

std::vector<SeededCandidate> WarmStart::seeds(const search::PreparedTask& task,
                                              const SeedOptions& options) const {
  const space::DesignSpace& space = task.design();
  const target::Device& device = task.device();
  struct Place {
    double distance, seconds;
    const std::string* key;
    const KnownProgram* program;
  };
  const auto allowed = [&](const std::string& key) {
    return !options.only_tasks || options.only_tasks->count(key) > 0;
  };
  std::vector<SeededCandidate> result;
  std::vector<uint64_t> taken;
  // Takes programs in order until `most` more are found.
  const auto take = [&](std::vector<Place> places, size_t most, bool same_task) {
    std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
      return std::tie(a.distance, a.seconds) < std::tie(b.distance, b.seconds);
    });
    const size_t end = result.size() + most;
    for (const Place& place : places) {
      if (result.size() >= end) break;
      auto candidate = adapt(*place.key, *place.program, space);
      if (!candidate) continue;
      const uint64_t hash = candidate->hash();
      if (std::find(taken.begin(), taken.end(), hash) != taken.end()) continue;
      taken.push_back(hash);
      const auto trace = space.to_trace(*candidate);
      if (!trace.ok()) continue;
      const KnownTask& source = programs_.at(*place.key);
      const auto untuned = source.default_seconds.find(place.program->device_key);
      const double speedup =
          untuned == source.default_seconds.end() ? 0 : untuned->second / place.program->seconds;
      result.push_back(
          {std::move(*candidate),
           {source.name, devices_.at(place.program->device_key).name, files_[place.program->file],
            place.program->seconds, same_task, speedup, place.distance},
           sched::hash(*trace)});
    }
  };
  if (const auto own = programs_.find(task.key()); own != programs_.end() && allowed(task.key())) {
    std::vector<Place> places;
    for (const KnownProgram& program : own->second.programs)
      places.push_back(
          {device_distance(devices_.at(program.device_key), device), program.seconds, &own->first, &program});
    take(std::move(places), options.same_task, true);
  }
  if (options.other_tasks == 0) return result;
  std::vector<std::pair<double, const std::string*>> nearest;
  for (const auto& [key, other] : programs_)
    if (other.kernel_class == task.kernel_class() && key != task.key() && allowed(key))
      nearest.emplace_back(search::shape_distance(task.workload(), *other.workload), &key);
  std::sort(nearest.begin(), nearest.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, *a.second) < std::tie(b.first, *b.second);
  });
  nearest.resize(std::min(nearest.size(), std::max(kNearest, options.other_tasks)));
  std::vector<Place> places;
  for (const auto& [distance, key] : nearest) {
    // Takes the fastest program of each device first, so that every task contributes one program
    // before any contributes two.
    std::map<std::string, int> of_device;
    for (const KnownProgram& program : programs_.at(*key).programs) {
      const int rank = of_device[program.device_key]++;
      places.push_back({distance + rank + device_distance(devices_.at(program.device_key), device),
                        program.seconds, key, &program});
    }
  }
  take(std::move(places), options.other_tasks, false);
  return result;
}

}  // namespace tensorsmith::engine
