#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/model/load_model.h"
#include "record/ansor/export.h"
#include "record/database.h"
#include "record/jsonl.h"
#include "record/metaschedule/export.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/named_tasks.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct DbOptions {
  std::string database;
  std::string file;
  int64_t fastest = 0;
  std::vector<std::string> models;   // models whose tasks' records are included; empty: all
  std::vector<std::string> without;  // models whose tasks' records are excluded
  std::vector<std::string> tasks;    // as in named_tasks(); empty: all
  std::string format = "tensorsmith";
  std::string workloads;  // output file, for TVM's formats
  bool force = false;
  bool json = false;
};

Status info(const DbOptions& options) {
  TS_ASSIGN_OR_RETURN(auto db, record::Database::open_read_only(options.database));
  TS_ASSIGN_OR_RETURN(const int64_t count, db->record_count());
  TS_ASSIGN_OR_RETURN(const auto tasks, db->tasks());
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& task : tasks)
      list.push_back({{"key", task.key}, {"name", task.name}, {"flops", task.flops}});
    print_json(nlohmann::json{{"records", count}, {"tasks", list}}, 2);
    return {};
  }
  Table table({"task", "work", "key"});
  for (const auto& task : tasks) table.add({task.name, format_flops(task.flops), task.key});
  print_lines(table.text());
  print_out("{} records of {} tasks in {}\n", count, tasks.size(), record::shown_database(options.database));
  return {};
}

Status check(const DbOptions& options) {
  TS_ASSIGN_OR_RETURN(auto db, record::Database::open_read_only(options.database));
  TS_RETURN_IF_ERROR(db->check_integrity());
  TS_ASSIGN_OR_RETURN(const int64_t count, db->record_count());
  const std::string shown = record::shown_database(options.database);
  if (options.json)
    print_json(nlohmann::json{{"database", shown}, {"sound", true}, {"records", count}});
  else
    print_out("{}: no damage found, {} records\n", shown, count);
  return {};
}

Result<std::set<std::string>> task_keys(const std::vector<std::string>& paths) {
  std::vector<engine::ModelSource> models;
  for (const std::string& path : paths) models.push_back({path});
  TS_ASSIGN_OR_RETURN(const auto tasks, engine::load_tasks(models));
  std::set<std::string> keys;
  for (const auto& shared : tasks) keys.insert(shared.task.key);
  return keys;
}

struct TvmCounts {
  int64_t records = 0, tasks = 0;
  int64_t other_tasks = 0, other_records = 0;  // that cannot be expressed in TVM's format
  std::map<std::string, int64_t> reasons;      // number of other records, by reason
};

std::string text_of(const TvmCounts& counts, const std::string& file) {
  std::string out = fmt::format("wrote {} records of {} tasks to {}\n", counts.records, counts.tasks, file);
  if (counts.other_records + counts.other_tasks == 0) return out;
  out += fmt::format("left out {} records and {} whole tasks that TVM's format cannot express\n",
                     counts.other_records, counts.other_tasks);
  for (const auto& [reason, records] : counts.reasons)
    out += fmt::format("  {} records: {}\n", records, reason);
  return out;
}

// Writes both files or neither. `Exporter`: one of record/ansor or record/metaschedule.
template <class Exporter>
Result<TvmCounts> export_tvm(record::Database& db, const DbOptions& options,
                             const record::Database::ExportOptions& what) {
  TS_ASSIGN_OR_RETURN(const auto lines, record::AtomicFileWriter::open(options.file));
  TS_ASSIGN_OR_RETURN(const auto workloads, record::AtomicFileWriter::open(options.workloads));
  Exporter exporter;
  std::map<std::string, target::Device> devices;
  TvmCounts counts;
  TS_RETURN_IF_ERROR(db.for_each_item(what, [&](const record::Database::Item& item) -> Status {
    if (const auto* task = std::get_if<record::TaskInfo>(&item)) {
      const Status added = exporter.add(*task);
      if (!added.ok() && added.error().code != ErrorCode::kUnsupported) return added;
      if (!added.ok()) ++counts.other_tasks;
    } else if (const auto* device = std::get_if<record::DeviceInfo>(&item)) {
      devices[device->key] = device->device;
    } else if (const auto* record = std::get_if<record::Record>(&item)) {
      const auto device_of = devices.find(record->device_key);
      const auto line =
          exporter.line(*record, device_of == devices.end() ? target::Device{} : device_of->second);
      if (!line.ok()) {
        ++counts.other_records;
        ++counts.reasons[line.error().reason];
        return {};
      }
      ++counts.records;
      return lines->write_line(*line);
    }
    return {};
  }));
  counts.tasks = exporter.tasks();
  const std::string all = exporter.workloads();
  if (!all.empty()) TS_RETURN_IF_ERROR(workloads->write_line(all));
  TS_RETURN_IF_ERROR(lines->commit());
  TS_RETURN_IF_ERROR(workloads->commit());
  return counts;
}

// Sets which records are written, and returns words for them.
Result<std::string> select_records(record::Database& db, int64_t count, const DbOptions& options,
                                   record::Database::ExportOptions& what) {
  const auto some = [](size_t number, const std::string& noun) {
    return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
  };
  what.fastest = options.fastest;
  const bool all = options.models.empty() && options.without.empty() && options.tasks.empty();
  std::string which = options.fastest > 0 ? "the " + std::to_string(options.fastest) +
                                                " fastest records of each task and device"
                      : all ? std::to_string(count) + " records"
                            : "the records";
  if (all) return which;
  TS_ASSIGN_OR_RETURN(auto tasks, db.tasks());
  if (!options.models.empty()) {
    TS_ASSIGN_OR_RETURN(const auto keys, task_keys(options.models));
    std::erase_if(tasks, [&](const record::TaskInfo& task) { return keys.count(task.key) == 0; });
    which += " of the tasks of " + some(options.models.size(), "model");
  }
  if (!options.without.empty()) {
    TS_ASSIGN_OR_RETURN(const auto keys, task_keys(options.without));
    std::erase_if(tasks, [&](const record::TaskInfo& task) { return keys.count(task.key) > 0; });
    which += ", without the tasks of " + some(options.without.size(), "model");
  }
  what.tasks.emplace();
  if (!options.tasks.empty()) {
    TS_ASSIGN_OR_RETURN(what.tasks, named_tasks(tasks, options.tasks));
    which += ", of " + some(what.tasks->size(), "named task");
  } else {
    for (const record::TaskInfo& task : tasks) what.tasks->insert(task.key);
  }
  return which;
}

Status export_lines(const DbOptions& options) {
  const bool metaschedule = options.format == "metaschedule", tvm = options.format == "tvm" || metaschedule;
  if (tvm != !options.workloads.empty())
    return Error{ErrorCode::kInvalidArgument, "--workloads",
                 tvm ? "is missing: --format " + options.format + " also writes a file of " +
                           (metaschedule ? "modules" : "compute DAGs") + ", so give that file's name"
                     : "belongs to TVM's formats; add --format tvm or --format metaschedule"};
  const OutputPath output{"FILE", options.file,
                          metaschedule ? OutputKind::kTvmRecords
                          : tvm        ? OutputKind::kAnsorLines
                                       : OutputKind::kRecordLines};
  std::vector<OutputPath> outputs = {output};
  if (tvm)
    outputs.push_back(
        {"--workloads", options.workloads, metaschedule ? OutputKind::kTvmModules : OutputKind::kWorkloads});
  TS_RETURN_IF_ERROR(check_outputs(outputs, {{"DATABASE", options.database}}, options.force));
  TS_ASSIGN_OR_RETURN(auto db, record::Database::open_read_only(options.database));
  TS_ASSIGN_OR_RETURN(const int64_t count, db->record_count());
  if (count == 0) TS_RETURN_IF_ERROR(check_not_emptied(output, options.force));
  record::Database::ExportOptions what;
  TS_ASSIGN_OR_RETURN(const std::string which, select_records(*db, count, options, what));
  if (tvm) {
    TS_ASSIGN_OR_RETURN(const TvmCounts counts,
                        metaschedule ? export_tvm<record::MetaScheduleExporter>(*db, options, what)
                                     : export_tvm<record::AnsorExporter>(*db, options, what));
    if (options.json) {
      print_json(nlohmann::json{{"database", record::shown_database(options.database)},
                                {"file", options.file},
                                {"workloads", options.workloads},
                                {"records", counts.records},
                                {"tasks", counts.tasks},
                                {"records_left_out", counts.other_records},
                                {"tasks_left_out", counts.other_tasks},
                                {"records_left_out_by_reason", counts.reasons}});
    } else {
      print_lines(text_of(counts, options.file));
    }
    return {};
  }
  TS_RETURN_IF_ERROR(db->export_jsonl(options.file, what));
  if (options.json)
    print_json(
        nlohmann::json{{"database", record::shown_database(options.database)}, {"file", options.file}});
  else
    print_out("wrote {} to {}\n", which, options.file);
  return {};
}

Status import_jsonl(const DbOptions& options) {
  TS_RETURN_IF_ERROR(
      check_outputs({{"DATABASE", options.database, OutputKind::kDatabase}}, {{"FILE", options.file}}));
  TS_RETURN_IF_ERROR(record::check_jsonl_file(options.file));  // before a database is created
  TS_ASSIGN_OR_RETURN(auto db, record::Database::open(options.database));
  TS_ASSIGN_OR_RETURN(const auto report, db->import_jsonl(options.file));
  for (const auto& problem : report.problems) warn(options.file + ": " + problem);
  if (options.json) {
    print_json(nlohmann::json{{"tasks", report.tasks},
                              {"devices", report.devices},
                              {"records", report.records},
                              {"profiles", report.profiles},
                              {"duplicates", report.duplicates},
                              {"corrupt", report.corrupt}});
  } else {
    print_out("{} tasks and {} records imported, {} already there, {} corrupt lines skipped\n", report.tasks,
              report.records, report.duplicates, report.corrupt);
  }
  return {};
}

Status copy(const DbOptions& options) {
  if (options.database == options.file)
    return Error{ErrorCode::kInvalidArgument, "TO", "is the same database as FROM; name another one"};
  TS_RETURN_IF_ERROR(
      check_outputs({{"TO", options.file, OutputKind::kDatabase}}, {{"FROM", options.database}}));
  TS_ASSIGN_OR_RETURN(const auto from, record::Database::open_read_only(options.database));
  TS_ASSIGN_OR_RETURN(const auto to, record::Database::open(options.file));
  TS_ASSIGN_OR_RETURN(const auto report, to->copy_from(*from));
  if (options.json) {
    print_json(nlohmann::json{{"tasks", report.tasks},
                              {"devices", report.devices},
                              {"records", report.records},
                              {"profiles", report.profiles},
                              {"duplicates", report.duplicates}});
    return {};
  }
  print_out("{} tasks, {} devices, {} records and {} profiles copied to {}, {} already there\n", report.tasks,
            report.devices, report.records, report.profiles, record::shown_database(options.file),
            report.duplicates);
  return {};
}

}  // namespace

void add_db_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("db", "Inspect, export, import and copy record databases");
  command->require_subcommand(1);
  auto add = [&](const char* name, const char* help, bool needs_file, auto function) {
    const bool copies = std::string_view(name) == "copy";
    auto options = std::make_shared<DbOptions>();
    CLI::App* sub = command->add_subcommand(name, help);
    constexpr const char* kDatabase = "Record database: an SQLite file, or postgresql://USER@HOST/NAME";
    sub->add_option(copies ? "from" : "database", options->database, kDatabase)->required();
    if (copies)
      sub->add_option("to", options->file, "Record database to copy into; only missing entries are added")
          ->required();
    if (needs_file) sub->add_option("file", options->file, "JSON lines file")->required();
    sub->add_flag("--json", options->json, "Print the result as JSON on standard output");
    sub->callback(
        [options, function, &exit_code] { exit_code = run_command([&] { return function(*options); }); });
    return std::pair(sub, options);
  };
  add("info", "Show the tasks of a record database and its number of records", false, info);
  add("check", "Check a record database for damage", false, check);
  const auto [export_command, export_options] =
      add("export", "Write a database's tasks, devices and records as JSON lines", true, export_lines);
  add_whole(*export_command, "--fastest", export_options->fastest, 0, kMaxCount,
            "Write only this many of the fastest records of each task and device (0 = all records)");
  export_command
      ->add_option("--of", export_options->models,
                   "Write only the tasks of this model, NAME.onnx or zoo:NAME (repeatable)")
      ->allow_extra_args(false);
  export_command
      ->add_option(
          "--without", export_options->without,
          "Leave out the tasks of this model (repeatable), for instance to keep them unseen in training")
      ->allow_extra_args(false);
  export_command
      ->add_option("--task", export_options->tasks,
                   "Write only the tasks whose name begins with this text, or the task with this key "
                   "(repeatable; `db info` lists names and keys)")
      ->allow_extra_args(false);
  export_command
      ->add_option("--format", export_options->format,
                   "Format of the file: tensorsmith (tasks, devices and records, for `db import`), tvm "
                   "(records of TVM's auto-scheduler) or metaschedule (database_tuning_record.json of TVM's "
                   "MetaSchedule)")
      ->check(CLI::IsMember({"tensorsmith", "tvm", "metaschedule"}))
      ->capture_default_str();
  export_command->add_option(
      "--workloads", export_options->workloads,
      "With --format tvm: JSON file to write; it maps each workload key to its compute "
      "DAG. With --format metaschedule: database_workload.json");
  add_force(*export_command, export_options->force);
  add("import",
      "Add tasks and records from a JSON lines file; records that the database already has are skipped", true,
      import_jsonl);
  add("copy",
      "Copy the contents of one database into another, file or server; an interrupted copy continues when "
      "run again",
      false, copy);
}

}  // namespace tensorsmith::tools
