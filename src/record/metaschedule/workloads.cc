#include "record/metaschedule/workloads.h"

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/json_text.h"
#include "ir/structural.h"
#include "record/line_reader.h"

namespace tensorsmith::record {

namespace {

using Json = nlohmann::json;

constexpr size_t kMaxWorkloadLine = size_t{64} << 20;
constexpr size_t kLengthBytes = 8;

// Returns the reduction with most points, or else the last operation.
std::string main_operation(const ir::Workload& workload) {
  const ir::Operation* most = nullptr;
  double most_points = 0;
  for (const auto& op : workload.operations) {
    if (!op->has_reduction() && !(most == nullptr && op == workload.operations.back())) continue;
    double points = 1;
    for (const auto* axes : {&op->spatial, &op->reduce}) {
      for (const ir::Axis& axis : *axes) points *= static_cast<double>(axis.extent);
    }
    if (most == nullptr || points > most_points) {
      most = op.get();
      most_points = points;
    }
  }
  return most->name;
}

Result<std::shared_ptr<const MetaScheduleWorkloads::Task>> task_of(std::string hash,
                                                                   const std::string& text) {
  const auto bytes = from_base64(text);
  if (!bytes || bytes->size() <= kLengthBytes)
    return Error{ErrorCode::kCorrupt, "", "the module is not base64 text"};
  TS_ASSIGN_OR_RETURN(TirModule module, read_tir_module(std::string_view(*bytes).substr(kLengthBytes)));
  auto task = std::make_shared<MetaScheduleWorkloads::Task>();
  task->key = std::move(hash);
  task->workload = std::move(module.workload);
  task->blocks = std::move(module.blocks);
  task->name = main_operation(task->workload);
  task->structural_key = ir::structural_key(task->workload);
  task->flops = ir::flop_count(task->workload);
  task->fresh = sched::Schedule::create(task->workload);
  return std::shared_ptr<const MetaScheduleWorkloads::Task>(std::move(task));
}

}  // namespace

Result<MetaScheduleWorkloads> MetaScheduleWorkloads::load(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const auto reader, LineReader::open(path, kMaxWorkloadLine));
  MetaScheduleWorkloads out;
  LineReader::Line line;
  while (true) {
    TS_ASSIGN_OR_RETURN(const bool more, reader->next(line));
    if (!more) break;
    if (line.text.find_first_not_of(" \t\r") == std::string::npos && !line.too_long) continue;
    const std::string place = path + ":" + std::to_string(line.number);
    const Json json = line.too_long ? Json() : parse_json<Json>(line.text);
    if (!json.is_array() || json.size() != 2 || !json[0].is_string() || !json[1].is_string())
      return Error{
          ErrorCode::kCorrupt, place,
          "is not a workload of MetaSchedule, [\"hash\", \"module\"]; give the database_workload.json "
          "that belongs to the records"};
    Entry& entry = out.entries_.emplace_back();
    auto task = task_of(json[0].get<std::string>(), json[1].get_ref<const std::string&>());
    if (task.ok()) {
      entry.task = std::move(*task);
    } else {
      entry.error = std::move(task).error();
      entry.error.place =
          "workload at " + place + (entry.error.place.empty() ? "" : ", ") + entry.error.place;
    }
  }
  return out;
}

std::shared_ptr<const MetaScheduleWorkloads::Task> MetaScheduleWorkloads::find(int64_t line) const {
  return line < 0 || std::cmp_greater_equal(line, entries_.size()) ? nullptr
                                                                   : entries_[static_cast<size_t>(line)].task;
}

Result<MetaScheduleWorkloads::Replayed> MetaScheduleWorkloads::replay(
    const MetaScheduleRecord& record) const {
  if (record.workload < 0 || std::cmp_greater_equal(record.workload, entries_.size()))
    return Error{ErrorCode::kNotFound, "",
                 "the record is of workload " + std::to_string(record.workload) +
                     ", but the file of workloads has " + std::to_string(entries_.size()) +
                     "; give the database_workload.json that belongs to the records"};
  const Entry& entry = entries_[static_cast<size_t>(record.workload)];
  if (!entry.task) return entry.error;
  TS_ASSIGN_OR_RETURN(MetaScheduleProgram program,
                      record::replay(entry.task->fresh, entry.task->blocks, record));
  return Replayed{entry.task, std::move(program)};
}

}  // namespace tensorsmith::record
