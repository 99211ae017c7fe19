#include <algorithm>
#include <limits>
#include <map>
#include <unordered_set>

#include "base/thread_pool.h"
#include "ir/text.h"
#include "learn/dataset/import.h"
#include "record/database.h"
#include "target/isa.h"

namespace tensorsmith::learn {

namespace {

constexpr size_t kRecordsAtOnce = 2048;
constexpr int64_t kProgressRecords = 4096;

// Maps an outcome to TVM's MeasureErrorNo, which stores use.
int error_number(record::Outcome outcome) {
  switch (outcome) {
    case record::Outcome::kOk:
      return 0;
    case record::Outcome::kInvalidSchedule:
      return 1;
    case record::Outcome::kBuildError:
      return 2;
    case record::Outcome::kCrash:
    case record::Outcome::kMemoryLimit:
      return 4;
    case record::Outcome::kWrongOutput:
      return 5;
    case record::Outcome::kBuildTimeout:
      return 6;
    case record::Outcome::kRunTimeout:
      return 7;
    case record::Outcome::kWorkerLost:
      return 8;
  }
  return 8;
}

class DatabaseImport {
 public:
  DatabaseImport(const ImportOptions& options, StoreWriter& writer)
      : options_(options), writer_(writer), pool_(std::max(1, options.threads - 1)) {}

  Status add(const std::string& path) {
    path_ = record::shown_database(path);
    tasks_.clear();
    devices_.clear();
    TS_ASSIGN_OR_RETURN(auto database, record::Database::open_read_only(path));
    TS_ASSIGN_OR_RETURN(const auto tasks, database->tasks());
    for (const auto& task : tasks) {
      auto workload = ir::parse_workload(task.text);
      if (workload.ok()) tasks_[task.key] = {task, std::move(workload).value(), std::nullopt};
    }
    TS_ASSIGN_OR_RETURN(const auto devices, database->devices());
    for (const auto& [key, device] : devices) devices_[key] = device;
    TS_ASSIGN_OR_RETURN(int64_t others, database->record_count());
    TS_RETURN_IF_ERROR(database->for_each([&](const record::Record& record) -> Status {
      --others;
      if (!seen_.insert(record.key()).second) {  // already in an earlier database
        ++report_.repeated;
        return {};
      }
      // One or two readings made the candidate look hopeless. A disturbance can cause such a reading,
      // and nothing was repeated to detect it; there are enough of these records to degrade a
      // model.
      if (record.result.ok() && record.result.stopped_early) {
        ++report_.stopped_early;
        return {};
      }
      if (record.settings.flush_cache) {
        problem("record " + record.key() + ": skipped, because it was measured with cold caches");
        return {};
      }
      slots_.push_back({record, {}, {}, {}});
      return slots_.size() < kRecordsAtOnce ? Status() : flush();
    }));
    report_.other_versions += std::max<int64_t>(0, others);  // workers may add records meanwhile
    return flush();
  }

  const ImportReport& report() const { return report_; }

 private:
  struct Task {
    record::TaskInfo info;
    ir::Workload workload;
    std::optional<uint32_t> number;
  };
  struct Slot {
    record::Record record;
    Status status;
    sched::Trace trace;
    feature::LeafFeatures leaves;
  };

  void problem(const std::string& reason) { report_.add_problem({path_, reason}); }

  void make(Slot& slot) const {
    const record::Record& record = slot.record;
    const auto fail = [&](const std::string& reason) {
      slot.status = Error{ErrorCode::kCorrupt, "record " + record.key(), reason};
    };
    const auto task = tasks_.find(record.task_key);
    if (task == tasks_.end()) return fail("its task is not in the database, or this version cannot read it");
    const auto device = devices_.find(record.device_key);
    if (device == devices_.end()) return fail("its device is not described in the database");
    auto trace = sched::parse_trace(record.trace);
    if (!trace.ok()) return fail(trace.error().message());
    slot.trace = std::move(*trace);
    feature::PerStoreOptions options;
    options.cacheline_bytes = device->second.cacheline_bytes;
    auto leaves = [&]() -> Result<feature::LeafFeatures> {
      TS_ASSIGN_OR_RETURN(const auto schedule, sched::replay(task->second.workload, slot.trace));
      return feature::extract_leaves(schedule, options);
    }();
    if (leaves.ok()) {
      slot.leaves = std::move(*leaves);
    } else if (record.result.ok()) {
      fail(leaves.error().message());
    }
  }

  Status flush() {
    pool_.parallel_for(std::ssize(slots_), 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) make(slots_[i]);
    });
    for (Slot& slot : slots_) {
      if (!slot.status.ok()) {
        problem(slot.status.error().message());
        continue;
      }
      TS_RETURN_IF_ERROR(store(slot));
    }
    slots_.clear();
    return {};
  }

  Status store(Slot& slot) {
    Task& task = tasks_.at(slot.record.task_key);
    if (!task.number)
      task.number =
          writer_.add_workload({task.info.key, task.info.name, task.info.text, task.info.flops, {}});
    const record::MeasureResult& result = slot.record.result;
    StoreRecord out;
    out.workload = *task.number;
    out.device = device_number(slot.record.device_key);
    out.error_no = error_number(result.outcome);
    out.unix_seconds = slot.record.unix_ms / 1000;
    // Other load can only slow a repeat down, so the fastest repeat is the best estimate.
    out.mean_seconds = result.ok() ? *std::min_element(result.seconds.begin(), result.seconds.end())
                                   : std::numeric_limits<double>::infinity();
    out.seconds = result.seconds;
    out.disturbance = result.disturbance;
    out.point = slot.record.candidate.point;
    out.leaves = std::move(slot.leaves);
    out.trace = std::move(slot.trace);
    ++report_.records;
    report_.failed += result.ok() ? 0 : 1;
    TS_RETURN_IF_ERROR(writer_.add(out));
    if (options_.progress && report_.records % kProgressRecords == 0) options_.progress(report_);
    return {};
  }

  uint32_t device_number(const std::string& key) {
    const auto known = device_numbers_.find(key);
    if (known != device_numbers_.end()) return known->second;
    target::Device device = devices_.at(key);
    device.name = stored_device_name(device);
    // Distinguishes, for example, machines with the same processor but different caches.
    if (!names_.emplace(device.name, key).second) device.name += "-" + key.substr(0, 8);
    return device_numbers_[key] = writer_.add_device(device.name, device);
  }

  const ImportOptions& options_;
  StoreWriter& writer_;
  ThreadPool pool_;
  std::string path_;
  std::map<std::string, Task> tasks_;              // of the current database, by key
  std::map<std::string, target::Device> devices_;  // of the current database, by key
  std::map<std::string, uint32_t> device_numbers_;
  std::map<std::string, std::string> names_;  // name of a device in the store -> its key
  std::unordered_set<std::string> seen_;      // keys of records
  std::vector<Slot> slots_;
  ImportReport report_;
};

}  // namespace

std::string stored_device_name(const target::Device& device) {
  if (device.name != "local") return device.name;
  const target::IsaLevel* level = target::isa_level(device);
  const std::string isa(level != nullptr ? level->name : "simd");
  return (device.processor.empty() ? device.arch : device.processor) + "-" + isa + "-" +
         std::to_string(device.compute_units()) + "t";
}

Result<ImportReport> import_databases(const std::vector<std::string>& paths, const std::string& output,
                                      const ImportOptions& options) {
  TS_ASSIGN_OR_RETURN(auto writer, StoreWriter::create(output));
  DatabaseImport import(options, *writer);
  for (const std::string& path : paths) TS_RETURN_IF_ERROR(import.add(path));
  if (import.report().records == 0 && options.allow_empty) TS_RETURN_IF_ERROR(options.allow_empty());
  TS_RETURN_IF_ERROR(writer->finish());
  return import.report();
}

}  // namespace tensorsmith::learn
