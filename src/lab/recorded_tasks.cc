#include "lab/recorded_tasks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/hash.h"
#include "record/line_reader.h"
#include "record/metaschedule/workloads.h"

namespace tensorsmith::lab {

namespace {

constexpr size_t kMaxLine = size_t{16} << 20;

// Tasks that are found in records, with their sketches.
class TaskList {
 public:
  TaskList(const std::function<bool(const std::string&)>& wanted, RecordedTasks& out)
      : wanted_(wanted), out_(out) {}

  // The records that follow were measured on this device.
  Status use_device(const std::string& name) {
    TS_ASSIGN_OR_RETURN(target::Device device, target::find_device(name));
    const auto known = std::find_if(out_.devices.begin(), out_.devices.end(),
                                    [&](const auto& d) { return d.key() == device.key(); });
    device_ = static_cast<size_t>(known - out_.devices.begin());
    if (known == out_.devices.end()) out_.devices.push_back(std::move(device));
    return {};
  }

  // Calls add() for each line that is not empty, and counts those for which it returns false.
  Status read(const std::string& path, const std::function<bool(const std::string& line)>& add) {
    TS_ASSIGN_OR_RETURN(auto reader, record::LineReader::open(path, kMaxLine));
    record::LineReader::Line line;
    while (true) {
      TS_ASSIGN_OR_RETURN(const bool more, reader->next(line));
      if (!more) return {};
      if (line.text.find_first_not_of(" \t\r") == std::string::npos && !line.too_long) continue;
      ++out_.records;
      if (line.too_long || !add(line.text)) ++out_.unusable;
    }
  }

  // Null if the device has no record of the task yet.
  RecordedTask* find(const std::string& key) {
    const auto place = places_.find({key, device_});
    return place == places_.end() ? nullptr : &out_.tasks[place->second];
  }
  RecordedTask* add(const std::string& key, std::shared_ptr<const record::ForeignTask> task) {
    places_.emplace(std::pair(key, device_), out_.tasks.size());
    return &out_.tasks.emplace_back(RecordedTask{std::move(task), device_, {}});
  }
  bool wants(const RecordedTask& task) const { return wanted_(task.task->structural_key); }

  // `seconds` is not finite for a program that failed or that was not measured. `replays` is asked about the
  // first program of a placement. Returns whether the program can be used.
  bool add_program(RecordedTask& task, const sched::Trace& trace, const std::string& like, double seconds,
                   const std::function<bool()>& replays) {
    const auto parts = record::split_trace(trace);
    auto sketch = std::find_if(task.sketches.begin(), task.sketches.end(),
                               [&](const auto& s) { return s.sketch == parts.sketch; });
    const auto listed = [&] {
      return std::find(sketch->placements.begin(), sketch->placements.end(), parts.placement);
    };
    if (sketch == task.sketches.end() || listed() == sketch->placements.end()) {
      if (!replays()) return false;
      if (sketch == task.sketches.end())
        sketch = task.sketches.insert(sketch, RecordedSketch{parts.sketch, {}, like, {}});
      sketch->placements.push_back(parts.placement);
    }
    if (!std::isfinite(seconds)) return true;
    RecordedSketch::Program program;
    program.placement = static_cast<size_t>(listed() - sketch->placements.begin());
    for (const int64_t number : parts.numbers) {
      if (number > std::numeric_limits<int32_t>::max()) return false;
      program.numbers.push_back(static_cast<int32_t>(number));
    }
    program.seconds = seconds;
    sketch->programs.push_back(std::move(program));
    return true;
  }

  void count_failed() { ++out_.failed; }
  void leave_out_empty_tasks() {
    std::erase_if(out_.tasks, [](const RecordedTask& task) { return task.sketches.empty(); });
  }

 private:
  const std::function<bool(const std::string&)>& wanted_;
  RecordedTasks& out_;
  size_t device_ = 0;
  std::map<std::pair<std::string, size_t>, size_t> places_;
};

bool add_ansor_record(const record::AnsorWorkloads& workloads, const record::AnsorRecord& record,
                      TaskList& tasks) {
  RecordedTask* task = tasks.find(record.workload_key);
  if (task == nullptr) {
    auto replayed = workloads.replay(record);
    if (!replayed.ok()) return false;  // the workload is unknown or does not fit the record
    task = tasks.add(record.workload_key, std::move(replayed->task));
  }
  if (!tasks.wants(*task)) return true;
  if (record.failed()) tasks.count_failed();
  const double seconds = record.failed() || record.unmeasured() ? std::numeric_limits<double>::infinity()
                                                                : record.mean_seconds();
  return tasks.add_program(*task, record.trace, record.task, seconds,
                           [&] { return record::replay(task->task->fresh, record).ok(); });
}

bool add_metaschedule_record(const record::MetaScheduleWorkloads& workloads,
                             const record::MetaScheduleRecord& record, TaskList& tasks) {
  const auto known = workloads.find(record.workload);
  if (known == nullptr) return false;
  RecordedTask* task = tasks.find(known->key);
  if (task == nullptr) task = tasks.add(known->key, known);
  if (!tasks.wants(*task)) return true;
  if (record.failed()) tasks.count_failed();
  auto replayed = workloads.replay(record);
  if (!replayed.ok()) return false;
  const double seconds = record.failed() ? std::numeric_limits<double>::infinity() : record.mean_seconds();
  return tasks.add_program(*task, replayed->program.trace, {}, seconds, [] { return true; });
}

}  // namespace

record::AnsorParts RecordedSketch::parts_of(const Program& program) const {
  return {sketch, placements[program.placement], {program.numbers.begin(), program.numbers.end()}};
}

double RecordedTask::best_seconds() const {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& sketch : sketches)
    for (const auto& program : sketch.programs) best = std::min(best, program.seconds);
  return best;
}

std::vector<std::pair<size_t, size_t>> RecordedTask::fastest_first() const {
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t s = 0; s < sketches.size(); ++s)
    for (size_t p = 0; p < sketches[s].programs.size(); ++p) order.emplace_back(s, p);
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return sketches[a.first].programs[a.second].seconds < sketches[b.first].programs[b.second].seconds;
  });
  return order;
}

Result<RecordedTasks> read_recorded_tasks(const std::vector<learn::ImportFile>& files,
                                          const record::AnsorWorkloads& workloads,
                                          const std::function<bool(const std::string& key)>& wanted) {
  RecordedTasks out;
  TaskList tasks(wanted, out);
  record::AnsorRecord record;
  for (const auto& file : files) {
    TS_RETURN_IF_ERROR(tasks.use_device(file.device));
    TS_RETURN_IF_ERROR(tasks.read(file.path, [&](const std::string& line) {
      return record::parse_ansor_record(line, record).ok() && add_ansor_record(workloads, record, tasks);
    }));
  }
  tasks.leave_out_empty_tasks();
  return out;
}

Result<RecordedTasks> read_recorded_tasks(const std::vector<learn::MetaScheduleDatabase>& databases,
                                          const std::function<bool(const std::string& key)>& wanted) {
  RecordedTasks out;
  TaskList tasks(wanted, out);
  for (const auto& database : databases) {
    TS_RETURN_IF_ERROR(tasks.use_device(database.device));
    TS_ASSIGN_OR_RETURN(const auto workloads, record::MetaScheduleWorkloads::load(database.workloads));
    TS_RETURN_IF_ERROR(tasks.read(database.records, [&](const std::string& line) {
      const auto record = record::parse_metaschedule_record(line);
      return record.ok() && add_metaschedule_record(workloads, *record, tasks);
    }));
  }
  tasks.leave_out_empty_tasks();
  return out;
}

bool in_share(const std::string& key, double share) { return Hasher().add(key).uniform() < share; }

}  // namespace tensorsmith::lab
