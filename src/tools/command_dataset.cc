#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "engine/model_data.h"
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
  std::string workloads, output;
  WorkingThreads threads;
  bool json = false, force = false;
};

// Records of Ansor that are given for a database: the remedy is an option.
Status check_database(const std::string& path) {
  auto reader = record::LineReader::open(path, size_t{1} << 24);
  if (record::is_database_file(path) || !reader.ok())
    return {};  // what is not there is reported where it is opened
  record::LineReader::Line line;
  const auto read = (*reader)->next(line);
  record::AnsorRecord parsed;
  if (!read.ok() || !*read || !record::parse_ansor_record(line.text, parsed).ok()) return {};
  return Error{ErrorCode::kInvalidArgument, path,
               "holds records of Ansor; add --workloads FILE, the JSON file of their computations "
               "(workload key -> compute DAG)"};
}

Status import(const ImportCommand& command) {
  const OutputPath output{"-o", command.output, OutputKind::kStore};
  std::vector<InputPath> inputs = {{"--workloads", command.workloads}};
  for (const std::string& file : command.files)
    inputs.push_back({"FILES", command.workloads.empty() ? file : import_file(file).path});
  TS_RETURN_IF_ERROR(check_outputs({output}, inputs, command.force));
  learn::ImportOptions options;
  options.allow_empty = [&] { return check_not_emptied(output, command.force); };
  options.threads = command.threads.count();
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal) {
    options.progress = [&](const learn::ImportReport& report) {
      print_error("\r{} records, {:.0f} a second", report.records,
                  static_cast<double>(report.records) / (clock.monotonic_seconds() - start));
    };
  }
  std::vector<learn::ImportFile> files;
  for (const std::string& file : command.files) {
    files.push_back(import_file(file));
    if (!command.workloads.empty() && record::is_database_file(files.back().path))
      return Error{
          ErrorCode::kInvalidArgument, files.back().path,
          "is a record database, and --workloads says that the files are Ansor records; make a store of "
          "each sort"};
    if (command.workloads.empty()) TS_RETURN_IF_ERROR(check_database(file));
  }
  const auto report = command.workloads.empty()
                          ? learn::import_databases(command.files, command.output, options)
                          : learn::import_ansor(files, command.workloads, command.output, options);
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
    print_out("{} records imported ({} of programs that failed); {:.0f} records a second{}{}\n",
              report->records, report->failed, static_cast<double>(report->records) / seconds,
              left_out.empty() ? "" : "; ", left_out);
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

// reverse: the last row first.
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
    return Error{ErrorCode::kInvalidArgument, "--schema", "'" + command.schema + "' is not known: per-store"};
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
    // TVM keeps its rows in a hash map, which nearly always gives the last inserted first.
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
  Table table({"device", "operator", "tasks", "records", "failed", "rows each", "leaves each"});
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
            store->devices().size(), store->content_hash(), command.verify ? ", contents sound" : "");
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
    chosen.resize(static_cast<size_t>(store->size()));
    for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = static_cast<int64_t>(i);
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
  CLI::App* command = app.add_subcommand("dataset", "Measured programs to train cost models on");
  command->require_subcommand(1);
  add_dataset_collect_command(*command, exit_code);
  add_dataset_label_command(*command, exit_code);
  add_dataset_next_command(*command, exit_code);
  add_dataset_schema_command(*command, exit_code);
  {
    auto [sub, o] = add<ImportCommand>(*command, "import",
                                       "Make a store of record databases, or of files of Ansor or TenSet "
                                       "records (with --workloads)",
                                       import, exit_code);
    sub->add_option(
           "files", o->files,
           "Record databases; or with --workloads [DEVICE=]FILE, JSON lines, plain or zstd; the device is "
           "the file's name up to its first dot")
        ->required();
    sub->add_option("--workloads", o->workloads, "JSON file of Ansor records: workload key -> compute DAG");
    sub->add_option("-o,--output", o->output, "The store; replaced if it exists")->required();
    add_force(*sub, o->force);
    o->threads.add_to(*sub, "Threads to work on");
    sub->add_flag("--json", o->json, "Machine-readable output");
  }
  {
    auto [sub, o] = add<StatsCommand>(*command, "stats", "What is in a store", stats, exit_code);
    sub->add_option("store", o->store, "The store")->required();
    sub->add_flag("--verify", o->verify, "Read all of it and check its hash");
    sub->add_flag("--json", o->json, "Machine-readable output");
  }
  {
    auto [sub, o] = add<SplitCommand>(*command, "split", "Decide once which records train, validate and test",
                                      split, exit_code);
    sub->add_option("store", o->store, "The store")->required();
    sub->add_option("-o,--output", o->output, "The split's file")->required();
    add_force(*sub, o->force);
    sub->add_option("--kind", o->kind, "within-task, by-task, by-device or few-tasks")->capture_default_str();
    add_real(*sub, "--validation", o->options.validation, 0, 1, "Share of the validation part");
    add_real(*sub, "--test", o->options.test, 0, 1, "Share of the test part");
    sub->add_option("--test-device", o->options.test_devices,
                    "by-device, few-tasks: a device to test on; may be given again");
    add_whole(*sub, "--profile-tasks", o->options.profile_tasks, 1, 1000000,
              "few-tasks: tasks of each test device that train too");
    sub->add_option("--choose", o->choice, "few-tasks: how they are chosen: medoids, kmeans or random")
        ->capture_default_str();
    sub->add_option("--profile-task", o->options.profiled,
                    "few-tasks: this one, by its key (see `dataset next`), instead; may be given again");
    add_seed(*sub, o->options.seed, "Another seed, another split");
    add_whole(*sub, "--min-records", o->options.min_records, 0, 1000000,
              "Leave out tasks with fewer measured programs");
  }
  {
    auto [sub, o] = add<ExportCommand>(
        *command, "export", "Write a store, or a part of a split, as JSON lines", export_jsonl, exit_code);
    sub->add_option("store", o->store, "The store")->required();
    sub->add_option("-o,--output", o->output, "JSON lines file")->required();
    add_force(*sub, o->force);
    sub->add_option("--split", o->split, "A split's file");
    sub->add_option("--part", o->part, "train, validation, test or unused");
    sub->add_flag("--features", o->features, "With the per-store features");
    sub->add_flag("--without-times", o->without_times,
                  "Without what was measured: for a program that predicts it (`eval --predicted`)");
    sub->add_flag("--steps", o->steps, "With the schedule's steps");
  }
  {
    auto [sub, o] = add<FeaturesCommand>(
        *command, "features", "Features of a file of records, one line a program", features, exit_code);
    sub->add_option("file", o->file, "JSON lines, plain or zstd")->required();
    sub->add_option("--workloads", o->workloads, "JSON file: workload key -> compute DAG")->required();
    sub->add_option("--schema", o->schema, "per-store (see dataset schema)")->capture_default_str();
    sub->add_option("-o,--output", o->output, "JSON lines file")->required();
    add_force(*sub, o->force);
    o->threads.add_to(*sub, "Threads to work on");
  }
}

}  // namespace tensorsmith::tools
