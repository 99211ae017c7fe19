#include <algorithm>
#include <filesystem>
#include <limits>

#include "learn/dataset/foreign_records.h"
#include "record/metaschedule/workloads.h"

namespace tensorsmith::learn {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWorkloadsFile = "database_workload.json";
constexpr std::string_view kRecordsFile = "database_tuning_record.json";
constexpr int kUnknownError = 8;  // TVM's MeasureErrorNo::kUnknownError

struct ProgramSlot : LineSlot {
  bool failed = false;
  double mean_seconds = 0;
  std::vector<double> seconds;
  std::shared_ptr<const record::MetaScheduleWorkloads::Task> task;
  sched::Trace trace;
  feature::LeafFeatures leaves;
};

// As with Ansor's records, one of a failed program counts as good even if it does not replay.
void make_program(const record::MetaScheduleWorkloads& workloads, ProgramSlot& slot) {
  slot.leaves = {};
  slot.trace = {};
  auto record = record::parse_metaschedule_record(slot.line.text);
  if (!record.ok()) {
    slot.status = std::move(record).error();
    return;
  }
  slot.failed = record->failed();
  slot.mean_seconds = slot.failed ? std::numeric_limits<double>::infinity() : record->mean_seconds();
  slot.seconds = record->seconds;
  slot.task = workloads.find(record->workload);
  slot.status = [&]() -> Status {
    TS_ASSIGN_OR_RETURN(auto replayed, workloads.replay(*record));
    TS_ASSIGN_OR_RETURN(slot.leaves, feature::extract_leaves(replayed.program.schedule, {}));
    slot.trace = std::move(replayed.program.trace);
    return {};
  }();
  if (!slot.status.ok() && slot.failed && slot.task) slot.status = {};
}

// Returns the part of the file's name before this one, if it ends so, perhaps compressed.
std::optional<std::string> prefix_of(const fs::path& path, std::string_view ending) {
  std::string name = path.filename();
  if (name.ends_with(".zst")) name.resize(name.size() - 4);
  if (!name.ends_with(ending)) return std::nullopt;
  return name.substr(0, name.size() - ending.size());
}

Status add_databases_of(const ImportFile& folder, std::vector<MetaScheduleDatabase>& out) {
  std::map<std::string, MetaScheduleDatabase> by_prefix;
  std::error_code error;
  fs::directory_iterator entry(folder.path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (const auto prefix = prefix_of(entry->path(), kWorkloadsFile))
      by_prefix[*prefix].workloads = entry->path();
    if (const auto prefix = prefix_of(entry->path(), kRecordsFile))
      by_prefix[*prefix].records = entry->path();
  }
  if (error) return Error{ErrorCode::kIo, folder.path, "cannot be listed: " + error.message()};
  if (by_prefix.empty())
    return Error{ErrorCode::kInvalidArgument, folder.path,
                 "is a folder that has neither " + std::string(kWorkloadsFile) + " nor " +
                     std::string(kRecordsFile) + "; give the folder that MetaSchedule wrote (its work_dir)"};
  for (auto& [prefix, database] : by_prefix) {
    const std::string_view missing = database.workloads.empty() ? kWorkloadsFile : kRecordsFile;
    if (database.workloads.empty() || database.records.empty())
      return Error{
          ErrorCode::kInvalidArgument, folder.path,
          "the folder has no " + prefix + std::string(missing) + "; a database consists of both files"};
    database.device = folder.device;
    out.push_back(std::move(database));
  }
  return {};
}

// Returns the first line of a file that has lines of text; empty for others.
std::string first_line(const std::string& path) {
  constexpr size_t kMaxLength = size_t{64} << 20;
  auto reader = record::LineReader::open(path, kMaxLength);
  record::LineReader::Line line;
  if (!reader.ok()) return {};  // a missing file is reported when it is opened
  const auto read = (*reader)->next(line);
  return read.ok() && *read ? line.text : std::string();
}

}  // namespace

Result<std::vector<MetaScheduleDatabase>> find_metaschedule_databases(const std::vector<ImportFile>& files) {
  std::vector<MetaScheduleDatabase> databases;
  std::vector<std::string> workloads;
  std::vector<ImportFile> records;
  std::string other;
  for (const ImportFile& file : files) {
    if (std::error_code error; fs::is_directory(file.path, error)) {
      TS_RETURN_IF_ERROR(add_databases_of(file, databases));
      continue;
    }
    const std::string line = first_line(file.path);
    if (record::looks_like_metaschedule_workload(line)) {
      workloads.push_back(file.path);
    } else if (record::looks_like_metaschedule_record(line)) {
      records.push_back(file);
    } else {
      other = file.path;
    }
  }
  if (databases.empty() && workloads.empty() && records.empty()) return databases;
  if (!other.empty())
    return Error{ErrorCode::kInvalidArgument, other,
                 "is not of MetaSchedule, as other files are; give each kind of records by itself"};
  if (workloads.size() != records.size() && (workloads.size() != 1 || records.empty()))
    return Error{ErrorCode::kInvalidArgument, records.empty() ? workloads.front() : records.front().path,
                 "is half of a database of MetaSchedule; give both " + std::string(kWorkloadsFile) + " and " +
                     std::string(kRecordsFile) + ", or the folder with both"};
  for (size_t i = 0; i < records.size(); ++i)
    databases.push_back(
        {records[i].device, workloads.size() == 1 ? workloads[0] : workloads[i], records[i].path});
  for (const MetaScheduleDatabase& database : databases) {
    if (database.device.empty())
      return Error{
          ErrorCode::kInvalidArgument, database.records,
          "says nothing about the device that ran the programs; put NAME= before the path (or, in `dataset "
          "import`, add --device NAME), one of `tensorsmith devices`"};
  }
  return databases;
}

Result<ImportReport> import_metaschedule(const std::vector<MetaScheduleDatabase>& databases,
                                         const std::string& output, const ImportOptions& options) {
  TS_ASSIGN_OR_RETURN(auto writer, StoreWriter::create(output));
  ForeignRecords records(*writer, options);
  std::vector<record::MetaScheduleWorkloads> workloads;
  workloads.reserve(databases.size());  // `records` refers to their tasks
  std::vector<ProgramSlot> slots;
  StoreRecord record;
  for (const MetaScheduleDatabase& database : databases) {
    TS_ASSIGN_OR_RETURN(const target::Device device, target::find_device(database.device));
    TS_ASSIGN_OR_RETURN(auto loaded, record::MetaScheduleWorkloads::load(database.workloads));
    workloads.push_back(std::move(loaded));
    record.device = writer->add_device(stored_device_name(device), device);
    const auto store = [&](ProgramSlot& slot) -> Status {
      record.error_no = slot.failed ? kUnknownError : 0;
      record.mean_seconds = slot.mean_seconds;
      std::swap(record.seconds, slot.seconds);
      std::swap(record.leaves, slot.leaves);
      std::swap(record.trace, slot.trace);
      return records.add(*slot.task, record);
    };
    const auto make = [&](ProgramSlot& slot) { make_program(workloads.back(), slot); };
    TS_RETURN_IF_ERROR(read_lines(database.records, options.threads, slots, make, store,
                                  [&](const ImportProblem& p) { records.add_problem(p); }));
  }
  return records.finish();
}

}  // namespace tensorsmith::learn
