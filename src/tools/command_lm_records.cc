// `lm` on records of other tuners: writes new ones of Ansor, and ranks recorded programs by their likelihood.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "engine/tune/tune_sources.h"
#include "lab/kinds/kinds.h"
#include "record/jsonl.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/language_commands.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Reads the workloads of the files that the model was not trained on, or all of them.
Result<RecordsRead> ask(const RecordOptions& records, const learn::lm::LanguageModel& model, bool seen) {
  const auto wanted = [&](const std::string& key) {
    return seen || !std::binary_search(model.tasks.begin(), model.tasks.end(), key);
  };
  TS_ASSIGN_OR_RETURN(auto read, records.read(wanted));
  if (read.tasks.tasks.empty())
    return Error{ErrorCode::kInvalidArgument, "--records",
                 "have only workloads that the language model was trained on; add --seen to use those"};
  return read;
}

// beam: width of the beam search; 0: no beam search.
Result<std::unique_ptr<engine::LanguageDecoder>> make_decoder(const learn::lm::LanguageModel& model,
                                                              int beam) {
  engine::DecoderOptions options;
  if (beam > 0) options.batch = beam;
  options.threads = WorkingThreads().count();
  TS_ASSIGN_OR_RETURN(const auto machine, target::probe_local());
  return engine::LanguageDecoder::create(model, machine, options);
}

struct RankCommand {
  RecordOptions records;
  std::string model, cost_model;
  int programs = 256;
  bool seen = false, quiet = false, json = false;
};

// Sums over the tasks of a device.
struct Ranks {
  size_t tasks = 0, programs = 0;
  size_t seen_by_cost_model = 0;
  lab::RankedTask::Found likeliest{}, contrasted{}, predicted{}, chance{};

  void add(const lab::RankedTask& task) {
    ++tasks;
    programs += task.programs;
    for (size_t i = 0; i < likeliest.size(); ++i) {
      likeliest[i] += task.likeliest[i];
      contrasted[i] += task.contrasted[i];
      predicted[i] += task.predicted[i];
      chance[i] += task.chance[i];
    }
  }
};

// Adds a device's rows: each ranking with its means over the tasks.
void add_rows(const std::string& device, const Ranks& ranks, const std::string& cost_model, Table& table,
              OrderedJson& json) {
  OrderedJson& entry = json[device];
  entry = {{"workloads", ranks.tasks}, {"programs", ranks.programs}};
  const auto add = [&](const std::string& who, const std::string& key, const lab::RankedTask::Found& sums) {
    std::vector<std::string> row{device, std::to_string(ranks.tasks), std::to_string(ranks.programs), who};
    OrderedJson& means = entry[key] = OrderedJson::object();
    for (size_t i = 0; i < sums.size(); ++i) {
      const double mean = sums[i] / ranks.tasks;
      row.push_back(fmt::format("{:.3f}", mean));
      means["top_" + std::to_string(lab::kRankedFirst[i])] = mean;
    }
    table.add(std::move(row));
  };
  add("likelihood", "likelihood", ranks.likeliest);
  add("likelihood ratio fast / slow", "contrast", ranks.contrasted);
  if (!cost_model.empty()) {
    add(cost_model, "cost_model", ranks.predicted);
    entry["workloads_seen_by_cost_model"] = ranks.seen_by_cost_model;
  }
  add("chance", "chance", ranks.chance);
}

Status rank(const RankCommand& command) {
  TS_ASSIGN_OR_RETURN(const std::string file, engine::language_model_file(command.model));
  TS_ASSIGN_OR_RETURN(const auto model, learn::lm::read_language_model(file));
  std::unique_ptr<learn::CostModel> cost_model;
  if (!command.cost_model.empty()) {
    TS_ASSIGN_OR_RETURN(cost_model, lab::cost_model_kinds().load(command.cost_model));
  }
  TS_ASSIGN_OR_RETURN(const RecordsRead asked, ask(command.records, model, command.seen));
  TS_ASSIGN_OR_RETURN(const auto decoder, make_decoder(model, 0));
  const auto& interrupted = catch_interrupts();
  std::map<size_t, Ranks> by_device;
  engine::DecodingReport report;
  const lab::RecordRanking options{static_cast<size_t>(command.programs), model.prompting, cost_model.get()};
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  double last = start;
  size_t done = 0;
  for (const auto& task : asked.tasks.tasks) {
    ++done;
    if (task.fastest_first().size() < 2) continue;
    TS_ASSIGN_OR_RETURN(const auto ranked,
                        lab::rank_records(*decoder, task, asked.tasks.devices[task.device], options, report));
    Ranks& ranks = by_device[task.device];
    ranks.add(ranked);
    if (cost_model != nullptr) {
      const auto& seen = cost_model->card().workloads;
      ranks.seen_by_cost_model +=
          std::binary_search(seen.begin(), seen.end(), task.task->structural_key) ? 1 : 0;
    }
    const double now = clock.monotonic_seconds();
    if (!command.quiet && now - last >= 5) {
      last = now;
      print_error("{} of {} workloads\n", done, asked.tasks.tasks.size());
    }
    if (interrupted) return Error{ErrorCode::kCancelled, "", "interrupted"};
  }
  if (by_device.empty())
    return Error{ErrorCode::kInvalidArgument, "--records",
                 "have no workload with at least two measured programs"};
  const double seconds = clock.monotonic_seconds() - start;
  std::vector<std::string> columns{"device", "workloads", "programs", "ranked by"};
  for (const size_t first : lab::kRankedFirst) columns.push_back("top-" + std::to_string(first));
  Table table(columns);
  OrderedJson json = OrderedJson::object();
  size_t seen = 0;
  for (const auto& [device, ranks] : by_device) {
    add_rows(asked.tasks.devices[device].name, ranks, command.cost_model, table, json);
    seen += ranks.seen_by_cost_model;
  }
  if (command.json) {
    print_json(OrderedJson{{"devices", json}, {"too_long", report.too_long}, {"seconds", seconds}});
    return {};
  }
  print_lines(table.text());
  if (seen > 0)
    print_out("the cost model {} was trained on {} of these workloads\n", command.cost_model, seen);
  print_out("{} programs read in {}; {} were too long for the language model\n", report.answers,
            format_duration(seconds), report.too_long);
  return {};
}

}  // namespace

CLI::Option* RecordOptions::add_to(CLI::App& command) {
  CLI::Option* option = command.add_option(
      "--records", files,
      "[DEVICE=]FILE with Ansor records: JSON lines, plain or compressed with zstd "
      "(repeatable); without DEVICE= the device is the file's name up to its first dot. Or "
      "DEVICE=FOLDER with a database of MetaSchedule");
  option->allow_extra_args(false);
  CLI::Option* of = command.add_option(
      "--workloads", workloads, "JSON file that maps each workload key of the records to its compute DAG");
  of->needs(option);
  return option;
}

std::vector<InputPath> RecordOptions::inputs() const {
  std::vector<InputPath> out{{"--workloads", workloads}};
  for (const std::string& file : files) out.push_back({"--records", import_file(file).path});
  return out;
}

Result<RecordsRead> RecordOptions::read(const std::function<bool(const std::string&)>& wanted) const {
  std::vector<learn::ImportFile> inputs, parts;  // devices of parts are those that are named
  for (const std::string& file : files) {
    const learn::ImportFile& input = inputs.emplace_back(import_file(file));
    parts.push_back({input.path != file ? input.device : "", input.path});
  }
  if (!workloads.empty()) parts.push_back({"", workloads});
  TS_ASSIGN_OR_RETURN(const auto databases, learn::find_metaschedule_databases(parts));
  RecordsRead read;
  if (databases.empty()) {
    if (workloads.empty())
      return Error{
          ErrorCode::kInvalidArgument, "--records " + files.front(),
          "is no database of MetaSchedule; for records of Ansor, add --workloads FILE, a JSON file that "
          "maps each workload key to its compute DAG"};
    TS_ASSIGN_OR_RETURN(read.ansor, record::AnsorWorkloads::load(workloads));
    TS_ASSIGN_OR_RETURN(read.tasks, lab::read_recorded_tasks(inputs, *read.ansor, wanted));
  } else {
    TS_ASSIGN_OR_RETURN(read.tasks, lab::read_recorded_tasks(databases, wanted));
  }
  const lab::RecordedTasks& tasks = read.tasks;
  const std::string_view unknown =
      read.ansor ? "their workloads are not in --workloads, or their steps cannot be applied"
                 : "their workloads cannot be read, or their instructions cannot be applied";
  if (tasks.unusable == tasks.records)
    return Error{ErrorCode::kInvalidArgument, "--records",
                 tasks.records == 0
                     ? "the files are empty: they contain no records"
                     : fmt::format("none of the {} records can be used: {}", tasks.records, unknown)};
  if (tasks.unusable > 0)
    warn(fmt::format("{} of {} records cannot be used: {}", tasks.unusable, tasks.records, unknown));
  return read;
}

Status generate_records(const RecordGeneration& command, const learn::lm::LanguageModel& model,
                        const lab::RecordWriting& options, bool json) {
  TS_RETURN_IF_ERROR(check_outputs({{"-o", command.output, OutputKind::kAnsorLines}},
                                   command.records.inputs(), command.force));
  TS_ASSIGN_OR_RETURN(const RecordsRead asked, ask(command.records, model, command.seen));
  if (!asked.ansor)
    return Error{
        ErrorCode::kUnsupported, "--records",
        "are of MetaSchedule, but new records are written in the format of Ansor; give records of Ansor"};
  TS_ASSIGN_OR_RETURN(const auto decoder, make_decoder(model, options.sampling.beam));
  TS_ASSIGN_OR_RETURN(auto writer, record::AtomicFileWriter::open(command.output));
  const auto& interrupted = catch_interrupts();
  engine::DecodingReport report;
  size_t programs = 0, replayed = 0;
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  for (const auto& task : asked.tasks.tasks) {
    TS_ASSIGN_OR_RETURN(
        const auto written,
        lab::write_records(*decoder, task, asked.tasks.devices[task.device], *asked.ansor, options, report));
    programs += written.programs;
    replayed += written.lines.size();
    for (const std::string& line : written.lines) TS_RETURN_IF_ERROR(writer->write_line(line));
    if (interrupted) return Error{ErrorCode::kCancelled, command.output, "interrupted; nothing was written"};
  }
  TS_RETURN_IF_ERROR(writer->commit());
  const double seconds = clock.monotonic_seconds() - start;
  const double share = programs > 0 ? static_cast<double>(replayed) / static_cast<double>(programs) : 0;
  if (json) {
    print_json(OrderedJson{{"workloads", asked.tasks.tasks.size()},
                           {"programs", programs},
                           {"replayed", replayed},
                           {"answers", report.answers},
                           {"dead_ends", report.dead_ends},
                           {"too_long", report.too_long},
                           {"seconds", seconds}});
    return {};
  }
  print_out(
      "{} records of {} workloads written to {} in {}; the steps of {:.1f} % of the generated programs could "
      "be applied; {} more answers stopped because no legal token was left, {} were too long\n",
      replayed, asked.tasks.tasks.size(), command.output, format_duration(seconds), 100 * share,
      report.dead_ends, report.too_long);
  return {};
}

void add_language_rank(CLI::App& lm, int& exit_code) {
  auto o = std::make_shared<RankCommand>();
  CLI::App* sub = lm.add_subcommand(
      "rank", "Test how well a language model's likelihood finds the fastest recorded programs");
  o->records.add_to(*sub)->required();
  sub->add_option("--lm", o->model,
                  "File of the language model, or shipped for the one that comes with Tensorsmith")
      ->required();
  sub->add_option("--cost-model", o->cost_model, "File of a cost model to compare with");
  add_whole(*sub, "--programs", o->programs, 2, 1'000'000,
            "Largest number of programs for each workload; they include the fastest and are spread over the "
            "range of times");
  sub->add_flag("--seen", o->seen, "Also use the workloads that the language model was trained on");
  sub->add_flag("--quiet", o->quiet, "Show no progress");
  sub->add_flag("--json", o->json, "Print the result as JSON on standard output");
  sub->callback([o, &exit_code] { exit_code = run_command([&] { return rank(*o); }); });
}

}  // namespace tensorsmith::tools
