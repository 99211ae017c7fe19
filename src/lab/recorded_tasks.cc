#include "lab/recorded_tasks.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/hash.h"
#include "record/line_reader.h"

namespace tensorsmith::lab {

namespace {

constexpr size_t kMaxLine = size_t{16} << 20;

class TaskReader {
 public:
  TaskReader(const record::AnsorWorkloads& workloads, const std::function<bool(const std::string&)>& wanted,
             RecordedTasks& out)
      : workloads_(workloads), wanted_(wanted), out_(out) {}

  Status read(const learn::ImportFile& file) {
    TS_ASSIGN_OR_RETURN(target::Device device, target::find_device(file.device));
    const auto known = std::find_if(out_.devices.begin(), out_.devices.end(),
                                    [&](const auto& d) { return d.key() == device.key(); });
    device_ = static_cast<size_t>(known - out_.devices.begin());
    if (known == out_.devices.end()) out_.devices.push_back(std::move(device));
    TS_ASSIGN_OR_RETURN(auto reader, record::LineReader::open(file.path, kMaxLine));
    record::LineReader::Line line;
    while (true) {
      TS_ASSIGN_OR_RETURN(const bool more, reader->next(line));
      if (!more) return {};
      if (line.text.find_first_not_of(" \t\r") == std::string::npos && !line.too_long) continue;
      ++out_.records;
      if (line.too_long || !record::parse_ansor_record(line.text, record_).ok() || !add()) ++out_.unusable;
    }
  }

 private:
  bool add() {
    RecordedTask* const task = find_task();
    if (task == nullptr) return false;
    if (!wanted_(task->task->structural_key)) return true;
    if (record_.failed()) ++out_.failed;
    const auto parts = record::split_trace(record_.trace);
    auto sketch = std::find_if(task->sketches.begin(), task->sketches.end(),
                               [&](const auto& s) { return s.sketch == parts.sketch; });
    const auto listed = [&] {
      return std::find(sketch->placements.begin(), sketch->placements.end(), parts.placement);
    };
    if (sketch == task->sketches.end() || listed() == sketch->placements.end()) {
      if (!record::replay(task->task->fresh, record_).ok()) return false;
      if (sketch == task->sketches.end())
        sketch = task->sketches.insert(sketch, RecordedSketch{parts.sketch, {}, record_.task, {}});
      sketch->placements.push_back(parts.placement);
    }
    if (record_.failed() || record_.unmeasured()) return true;
    RecordedSketch::Program program;
    program.placement = static_cast<size_t>(listed() - sketch->placements.begin());
    for (const int64_t number : parts.numbers) {
      if (number > std::numeric_limits<int32_t>::max()) return false;
      program.numbers.push_back(static_cast<int32_t>(number));
    }
    program.seconds = record_.mean_seconds();
    sketch->programs.push_back(std::move(program));
    return true;
  }

  // Null: the workload is unknown or does not fit the record.
  RecordedTask* find_task() {
    const auto place = places_.find({record_.workload_key, device_});
    if (place != places_.end()) return &out_.tasks[place->second];
    auto replayed = workloads_.replay(record_);
    if (!replayed.ok()) return nullptr;
    places_.emplace(std::pair(record_.workload_key, device_), out_.tasks.size());
    return &out_.tasks.emplace_back(RecordedTask{std::move(replayed->task), device_, {}});
  }

  const record::AnsorWorkloads& workloads_;
  const std::function<bool(const std::string&)>& wanted_;
  RecordedTasks& out_;
  size_t device_ = 0;
  std::map<std::pair<std::string, size_t>, size_t> places_;
  record::AnsorRecord record_;
};

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
  TaskReader reader(workloads, wanted, out);
  for (const auto& file : files) TS_RETURN_IF_ERROR(reader.read(file));
  std::erase_if(out.tasks, [](const RecordedTask& task) { return task.sketches.empty(); });
  return out;
}

bool in_share(const std::string& key, double share) { return Hasher().add(key).uniform() < share; }

}  // namespace tensorsmith::lab
