#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "engine/predict/model_data.h"
#include "learn/dataset/import.h"
#include "learn/dataset/split.h"
#include "record/database.h"
#include "record/jsonl.h"
#include "record/line_reader.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/import_summary.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

using Json = nlohmann::json;

void warn_of(const learn::ImportProblem& problem) { warn(problem.place + ": " + problem.reason); }

// --- import

struct ImportCommand {
  std::vector<std::string> files;
  std::string workloads, device, output;
  WorkingThreads threads;
  bool json = false, force = false;
};

// Rejects Ansor's records given as a database; the error names the right option.
Status check_database(const std::string& path) {
  auto reader = record::LineReader::open(path, size_t{1} << 24);
  if (record::is_database_file(path) || !reader.ok())
    return {};  // a missing file is reported when it is opened
  record::LineReader::Line line;
  const auto read = (*reader)->next(line);
  record::AnsorRecord parsed;
  if (!read.ok() || !*read || !record::parse_ansor_record(line.text, parsed).ok()) return {};
  return Error{ErrorCode::kInvalidArgument, path,
               "contains records of Ansor; add --workloads FILE, a JSON file that maps each workload key to "
               "its compute DAG"};
}

// The files to import: databases of MetaSchedule; if there are none, files of Ansor (with --workloads) or
// record databases.
struct ImportInputs {
  std::vector<learn::ImportFile> files;  // devices are those of files of Ansor
  std::vector<learn::MetaScheduleDatabase> metaschedule;
};

Result<ImportInputs> import_inputs(const ImportCommand& command) {
  ImportInputs inputs;
  std::vector<learn::ImportFile> parts;  // of databases of MetaSchedule, with the devices that are named
  for (const std::string& text : command.files) {
    learn::ImportFile& file = inputs.files.emplace_back(import_file(text));
    const bool named = file.path != text;
    if (!named && !command.device.empty()) file.device = command.device;
    parts.push_back({named ? file.device : command.device, file.path});
  }
  if (!command.workloads.empty()) parts.push_back({"", command.workloads});
  TS_ASSIGN_OR_RETURN(inputs.metaschedule, learn::find_metaschedule_databases(parts));
  if (!inputs.metaschedule.empty()) return inputs;
  for (const learn::ImportFile& part : parts) {
    if (std::error_code error; !command.device.empty() && !std::filesystem::exists(part.path, error))
      return Error{ErrorCode::kNotFound, part.path, "does not exist"};
  }
  if (command.workloads.empty() && !command.device.empty())
    return Error{ErrorCode::kInvalidArgument, command.files.front(),
                 "is no database of MetaSchedule; for record databases, which know the devices of their "
                 "records, leave out --device"};
  for (size_t i = 0; i < command.files.size(); ++i) {
    if (!command.workloads.empty() && record::is_database_file(inputs.files[i].path))
      return Error{ErrorCode::kInvalidArgument, inputs.files[i].path,
                   "is a record database, but --workloads says that the files are Ansor records; make one "
                   "store of the databases and another of the Ansor files"};
    if (command.workloads.empty()) TS_RETURN_IF_ERROR(check_database(command.files[i]));
  }
  return inputs;
}

Status import(const ImportCommand& command) {
  const OutputPath output{"-o", command.output, OutputKind::kStore};
  std::vector<InputPath> inputs = {{"--workloads", command.workloads}};
  for (const std::string& file : command.files) {
    inputs.push_back({"FILES", file});
    inputs.push_back({"FILES", import_file(file).path});
  }
  TS_RETURN_IF_ERROR(check_outputs({output}, inputs, command.force));
  learn::ImportOptions options;
  options.allow_empty = [&] { return check_not_emptied(output, command.force); };
  options.threads = command.threads.count();
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal) {
    options.progress = [&](const learn::ImportReport& report) {
      print_error("\r{} records, {:.0f} per second", report.records,
                  report.records / (clock.monotonic_seconds() - start));
    };
  }
  TS_ASSIGN_OR_RETURN(const ImportInputs found, import_inputs(command));
  const auto report = !found.metaschedule.empty()
                          ? learn::import_metaschedule(found.metaschedule, command.output, options)
                      : command.workloads.empty()
                          ? learn::import_databases(command.files, command.output, options)
                          : learn::import_ansor(found.files, command.workloads, command.output, options);
  if (terminal) write_error("\r\033[K");
  if (!report.ok()) return report.error();
  for (const auto& problem : report->problems) warn_of(problem);
  const double seconds = clock.monotonic_seconds() - start;
  if (command.json) {
    Json json = import_json(*report);
    json["seconds"] = seconds;
    print_json(json);
  } else {
    const std::string left_out = left_out_text(*report);
    print_out("{} records imported ({} of them of failed programs); {:.0f} records per second{}{}\n",
              report->records, report->failed, report->records / seconds, left_out.empty() ? "" : "; ",
              left_out);
  }
  return {};
}

// --- features

struct FeaturesCommand {
  std::string file, workloads, output, schema = "per-store";
  WorkingThreads threads;
  bool force = false;
};

void append_number(float value, std::string& out) {
  std::array<char, 32> text;
  out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
}

// reverse: writes the last row first.
void append_matrix(const feature::FeatureMatrix& matrix, bool reverse, std::string& out) {
  out += '[';
  for (int r = 0; r < matrix.rows; ++r) {
    out += r == 0 ? "[" : ",[";
    const auto row = matrix.row(reverse ? matrix.rows - 1 - r : r);
    for (size_t c = 0; c < row.size(); ++c) {
      if (c > 0) out += ',';
      append_number(row[c], out);
    }
    out += ']';
  }
  out += ']';
}

Status features(const FeaturesCommand& command) {
  if (command.schema != "per-store")
    return Error{ErrorCode::kInvalidArgument, "--schema",
                 "'" + command.schema + "' is unknown; the only one is per-store"};
  const OutputPath output{"-o", command.output, OutputKind::kFeatureLines};
  TS_RETURN_IF_ERROR(
      check_outputs({output}, {{"FILE", command.file}, {"--workloads", command.workloads}}, command.force));
  TS_ASSIGN_OR_RETURN(const auto workloads, record::AnsorWorkloads::load(command.workloads));
  TS_ASSIGN_OR_RETURN(auto writer, record::AtomicFileWriter::open(command.output));
  learn::ProgramReader reader(workloads, command.threads.count());
  int64_t programs = 0, corrupt = 0;
  std::string line;
  const auto write = [&](learn::ImportedProgram& program) {
    line = "{\"features\":";
    // TVM keeps its rows in a hash map, which nearly always yields the last inserted row first.
    append_matrix(program.leaves.per_store(), true, line);
    line += '}';
    ++programs;
    return writer->write_line(line);
  };
  const auto skip = [&](const learn::ImportProblem& problem) {
    if (++corrupt <= 20) warn_of(problem);
  };
  TS_RETURN_IF_ERROR(reader.read(command.file, write, skip));
  if (programs == 0) TS_RETURN_IF_ERROR(check_not_emptied(output, command.force));
  TS_RETURN_IF_ERROR(writer->commit());
  print_out("features of {} programs written to {}, {} corrupt lines skipped\n", programs, command.output,
            corrupt);
  return {};
}

// --- stats

struct StatsCommand {
  std::string store;
  bool verify = false, json = false;
};

struct Count {
  int64_t records = 0, failed = 0, rows = 0, leaves = 0;
  std::map<uint32_t, int64_t> tasks;
  void add(const learn::Store::Entry& entry) {
    ++records;
    failed += entry.failed() ? 1 : 0;
    rows += entry.rows;
    leaves += entry.leaves;
    ++tasks[entry.workload];
  }
};

Status stats(const StatsCommand& command) {
  TS_ASSIGN_OR_RETURN(const auto store, learn::Store::open(command.store));
  if (command.verify) TS_RETURN_IF_ERROR(store->verify());
  std::map<std::pair<std::string, std::string>, Count> counts;  // by device and operator
  std::map<std::string, Count> totals;
  for (int64_t i = 0; i < store->size(); ++i) {
    const auto entry = store->entry(i);
    const std::string& device = store->devices()[entry.device];
    counts[{device, store->workloads()[entry.workload].name}].add(entry);
    totals[device].add(entry);
  }
  if (command.json) {
    Json devices = Json::object();
    for (const auto& [device, c] : totals)
      devices[device] = {
          {"records", c.records}, {"failed", c.failed}, {"tasks", c.tasks.size()}, {"rows", c.rows}};
    print_json(Json{{"records", store->size()},
                    {"tasks", store->workloads().size()},
                    {"hash", store->content_hash()},
                    {"devices", devices}});
    return {};
  }
  Table table({"device", "operator", "tasks", "records", "failed", "rows per record", "leaves per record"});
  const auto row = [&](const std::string& device, const std::string& name, const Count& c) {
    const auto each = [&](int64_t n) {
      return fmt::format("{:.1f}", static_cast<double>(n) / static_cast<double>(c.records));
    };
    table.add({device, name, std::to_string(c.tasks.size()), std::to_string(c.records),
               std::to_string(c.failed), each(c.rows), each(c.leaves)});
  };
  for (const auto& [key, c] : counts) row(key.first, key.second, c);
  for (const auto& [device, c] : totals) row(device, "all", c);
  print_lines(table.text());
  print_out("{} records of {} workloads on {} devices, hash {}{}\n", store->size(), store->workloads().size(),
            store->devices().size(), store->content_hash(), command.verify ? ", contents verified" : "");
  return {};
}

// --- split

struct SplitCommand {
  std::string store, output, kind = "by-task", choice = "medoids";
  learn::SplitOptions options;
  bool force = false;
};

Status split(const SplitCommand& command) {
  TS_RETURN_IF_ERROR(
      check_outputs({{"-o", command.output, OutputKind::kSplit}}, {{"STORE", command.store}}, command.force));
  learn::SplitOptions options = command.options;
  TS_ASSIGN_OR_RETURN(options.kind, learn::parse_split_kind(command.kind));
  TS_ASSIGN_OR_RETURN(options.choice, learn::parse_task_choice(command.choice));
  TS_ASSIGN_OR_RETURN(const auto store, learn::Store::open(command.store));
  TS_ASSIGN_OR_RETURN(const auto split, learn::make_split(*store, options));
  TS_RETURN_IF_ERROR(learn::check_split(*store, split));
  TS_RETURN_IF_ERROR(learn::save_split(split, command.output));
  Table table({"part", "tasks", "records"});
  for (const auto part :
       {learn::Part::kTrain, learn::Part::kValidation, learn::Part::kTest, learn::Part::kUnused}) {
    std::map<std::pair<uint32_t, uint32_t>, int> tasks;
    const auto records = split.records_of(part);
    for (int64_t i : records) ++tasks[{store->entry(i).device, store->entry(i).workload}];
    table.add(
        {std::string(learn::to_string(part)), std::to_string(tasks.size()), std::to_string(records.size())});
  }
  print_lines(table.text());
  print_out("{} split of {} written to {}\n", command.kind, command.store, command.output);
  return {};
}

// --- export

struct ExportCommand {
  std::string store, output, split, part;
  bool features = false, steps = false, without_times = false, force = false;
};

Status export_jsonl(const ExportCommand& command) {
  const OutputPath output{"-o", command.output, OutputKind::kStoreLines};
  TS_RETURN_IF_ERROR(
      check_outputs({output}, {{"STORE", command.store}, {"--split", command.split}}, command.force));
  TS_ASSIGN_OR_RETURN(const auto store, learn::Store::open(command.store));
  std::vector<int64_t> chosen;
  if (!command.split.empty()) {
    TS_ASSIGN_OR_RETURN(const auto split, learn::load_split(command.split));
    TS_RETURN_IF_ERROR(learn::check_split(*store, split));
    TS_ASSIGN_OR_RETURN(const learn::Part part, engine::parse_part(command.part));
    chosen = split.records_of(part);
  } else {
    if (!command.part.empty()) return Error{ErrorCode::kInvalidArgument, "--part", "needs --split"};
    chosen.resize(store->size());
    for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = i;
  }
  if (chosen.empty()) TS_RETURN_IF_ERROR(check_not_emptied(output, command.force));
  TS_ASSIGN_OR_RETURN(auto writer, record::AtomicFileWriter::open(command.output));
  for (int64_t i : chosen) {
    const auto entry = store->entry(i);
    const auto& workload = store->workloads()[entry.workload];
    Json json = {
        {"workload", workload.key}, {"name", workload.name}, {"device", store->devices()[entry.device]}};
    if (!command.without_times) {
      json["error_no"] = entry.error_no;
      json["seconds"] = std::vector<double>(entry.seconds.begin(), entry.seconds.end());
      json["time"] = entry.unix_seconds;
    }
    if (command.steps) {
      TS_ASSIGN_OR_RETURN(const auto trace, store->trace(i));
      json["steps"] = sched::print(trace);
    }
    std::string line = json_text(json);
    if (command.features) {
      line.pop_back();
      line += ",\"features\":";
      append_matrix(store->per_store(i), false, line);
      line += '}';
    }
    TS_RETURN_IF_ERROR(writer->write_line(line));
  }
  TS_RETURN_IF_ERROR(writer->commit());
  print_out("{} records written to {}\n", chosen.size(), command.output);
  return {};
}

template <class Options, class Function>
std::pair<CLI::App*, std::shared_ptr<Options>> add(CLI::App& parent, const char* name, const char* help,
                                                   Function function, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = parent.add_subcommand(name, help);
  sub->callback(
      [options, function, &exit_code] { exit_code = run_command([&] { return function(*options); }); });
  return {sub, options};
}

}  // namespace

void add_dataset_command(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("dataset", "Prepare measured programs as training data for cost models");
  command->require_subcommand(1);
  add_dataset_collect_command(*command, exit_code);
  add_dataset_label_command(*command, exit_code);
  add_dataset_next_command(*command, exit_code);
  add_dataset_schema_command(*command, exit_code);
  {
    auto [sub, o] = add<ImportCommand>(
        *command, "import",
        "Make a store from record databases, from databases of MetaSchedule, or with --workloads from files "
        "of Ansor or TenSet records",
        import, exit_code);
    sub->add_option(
           "files", o->files,
           "Record databases; or [DEVICE=]FOLDER of MetaSchedule, with database_workload.json and "
           "database_tuning_record.json, or these two files; or with --workloads [DEVICE=]FILE, JSON lines "
           "of "
           "Ansor or TenSet records (without DEVICE= the device is the file's name up to its first dot). All "
           "but record databases plain or compressed with zstd")
        ->required();
    sub->add_option("--workloads", o->workloads,
                    "For Ansor or TenSet records: JSON file that maps each workload key to its compute DAG");
    sub->add_option(
        "--device", o->device,
        "Device that ran the programs of files without DEVICE=; databases of MetaSchedule need it");
    sub->add_option("-o,--output", o->output, "File of the new store; an existing store is replaced")
        ->required();
    add_force(*sub, o->force);
    o->threads.add_to(*sub, "Number of threads to use");
    sub->add_flag("--json", o->json, "Print the result as JSON on standard output");
  }
  {
    auto [sub, o] = add<StatsCommand>(*command, "stats", "Show the contents of a store", stats, exit_code);
    sub->add_option("store", o->store, "File of the store")->required();
    sub->add_flag("--verify", o->verify, "Read the whole store and check its hash");
    sub->add_flag("--json", o->json, "Print the result as JSON on standard output");
  }
  {
    auto [sub, o] =
        add<SplitCommand>(*command, "split", "Assign the records of a store to training, validation and test",
                          split, exit_code);
    sub->add_option("store", o->store, "File of the store")->required();
    sub->add_option("-o,--output", o->output, "File of the new split")->required();
    add_force(*sub, o->force);
    sub->add_option("--kind", o->kind,
                    "How to split: within-task (each task is in all parts), by-task (each task is in one "
                    "part), by-device (--test-device tests, all others train) or few-tasks (as by-device, "
                    "and a few tasks of the test device train)")
        ->capture_default_str();
    add_real(*sub, "--validation", o->options.validation, 0, 1, "Share of the data for validation");
    add_real(*sub, "--test", o->options.test, 0, 1, "Share of the data for the test");
    sub->add_option("--test-device", o->options.test_devices,
                    "For by-device and few-tasks: device to test on (repeatable)");
    add_whole(*sub, "--profile-tasks", o->options.profile_tasks, 1, 1000000,
              "For few-tasks: number of tasks of each test device that are used for training");
    sub->add_option("--choose", o->choice,
                    "For few-tasks: how these tasks are chosen: medoids, kmeans or random")
        ->capture_default_str();
    sub->add_option("--profile-task", o->options.profiled,
                    "For few-tasks: key of a task to train on (repeatable), instead of --choose; `dataset "
                    "next` prints keys");
    add_seed(*sub, o->options.seed, "Seed of the random split");
    add_whole(*sub, "--min-records", o->options.min_records, 0, 1000000,
              "Leave out tasks with fewer measured programs than this");
  }
  {
    auto [sub, o] = add<ExportCommand>(
        *command, "export", "Write the records of a store, or of one part of a split, as JSON lines",
        export_jsonl, exit_code);
    sub->add_option("store", o->store, "File of the store")->required();
    sub->add_option("-o,--output", o->output, "JSON lines file to write")->required();
    add_force(*sub, o->force);
    sub->add_option("--split", o->split, "File of a split; with --part it selects the records to write");
    sub->add_option("--part", o->part, "Part of the split to write: train, validation, test or unused");
    sub->add_flag("--features", o->features, "Add the per-store features of each program");
    sub->add_flag(
        "--without-times", o->without_times,
        "Leave out the measured times, so that another program can predict them (see `eval --predicted`)");
    sub->add_flag("--steps", o->steps, "Add the steps of each schedule");
  }
  {
    auto [sub, o] = add<FeaturesCommand>(
        *command, "features",
        "Write the features of the programs in a file of Ansor records, one line per program", features,
        exit_code);
    sub->add_option("file", o->file, "File of Ansor records: JSON lines, plain or compressed with zstd")
        ->required();
    sub->add_option("--workloads", o->workloads, "JSON file that maps each workload key to its compute DAG")
        ->required();
    sub->add_option("--schema", o->schema,
                    "Kind of features; only per-store is supported (see `dataset schema`)")
        ->capture_default_str();
    sub->add_option("-o,--output", o->output, "JSON lines file to write")->required();
    add_force(*sub, o->force);
    o->threads.add_to(*sub, "Number of threads to use");
  }
}

}  // namespace tensorsmith::tools
