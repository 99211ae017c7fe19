#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "engine/device/gpu_device.h"
#include "engine/predict/model_data.h"
#include "lab/evaluation_run.h"
#include "lab/kinds/kinds.h"
#include "learn/dataset/import.h"
#include "learn/latency/queries.h"
#include "record/jsonl.h"
#include "record/line_reader.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/eval_profiled.h"
#include "tools/eval_rounds.h"
#include "tools/evaluation_table.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/profiled_data.h"
#include "tools/report.h"
#include "tools/scatter_plot.h"

namespace tensorsmith::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct EvalCommand {
  std::vector<std::string> models, records, splits, devices, databases, tasks;
  std::string workloads, device, store, part = "test", predictions, plot, predicted;
  WorkingThreads threads;
  learn::RankSetOptions sets;
  lab::LearningCurveOptions curves = {.rounds = 0};
  bool table = false, json = false, force = false;
};

// Writes pairs of measured and predicted seconds, one JSON line each.
class PredictionWriter {
 public:
  static Result<std::unique_ptr<PredictionWriter>> open(const std::string& path) {
    auto out = std::make_unique<PredictionWriter>();
    if (!path.empty()) {
      TS_ASSIGN_OR_RETURN(out->writer_, record::AtomicFileWriter::open(path));
    }
    return out;
  }
  Status write(const lab::EvaluatedProgram& p, const learn::Prediction& prediction) {
    if (!writer_) return {};
    OrderedJson line = {{"workload", p.workload->key},
                        {"name", p.workload->name},
                        {"device", p.device->name},
                        {"measured", std::isfinite(p.seconds) ? OrderedJson(p.seconds) : OrderedJson()},
                        {"predicted", prediction.seconds},
                        {"log_sigma", prediction.log_sigma},
                        {"log_90", prediction.half90()},
                        {"log_95", prediction.half95()}};
    return writer_->write_line(json_text(line));
  }
  Status commit() { return writer_ ? writer_->commit() : Status(); }

 private:
  std::unique_ptr<record::AtomicFileWriter> writer_;
};

// Evaluates programs of Ansor's records while they are read.
Status evaluate_files(const EvalCommand& command, const target::Device& device, bool traces,
                      lab::EvaluationRun& run, int64_t& corrupt) {
  TS_ASSIGN_OR_RETURN(const auto workloads, record::AnsorWorkloads::load(command.workloads));
  learn::ProgramReader reader(workloads, command.threads.count());
  // std::unordered_map is node-based, so pointers to its values stay valid.
  std::unordered_map<const record::AnsorWorkloads::Task*, learn::StoredWorkload> tasks;
  lab::EvaluatedProgram program;
  const auto add = [&](learn::ImportedProgram& imported) {
    const auto [it, added] = tasks.try_emplace(imported.task.get());
    if (added) it->second = learn::stored_workload(*imported.task);
    program.workload = &it->second;
    program.device = &device;
    program.seconds = imported.record.failed() ? INFINITY : imported.record.mean_seconds();
    std::swap(program.leaves, imported.leaves);
    if (traces) std::swap(program.trace, imported.record.trace);
    return run.add(program);
  };
  const auto skip = [&](const learn::ImportProblem& problem) {
    if (++corrupt <= 20) warn(problem.place + ": " + problem.reason);
  };
  for (const std::string& file : command.records) TS_RETURN_IF_ERROR(reader.read(file, add, skip));
  return run.finish();
}

OrderedJson groups(const std::vector<std::pair<std::string, learn::Scores>>& scores, bool ranks_only) {
  OrderedJson out = OrderedJson::object();
  for (const auto& [name, s] : scores) out[name] = learn::to_json(s, ranks_only);
  return out;
}

std::string percent(double share, bool ranks_only) {
  return ranks_only ? "-" : fmt::format("{:.1f}", 100 * share);
}

void print_people(const learn::Evaluation& e, bool ranks_only) {
  Table table({"", "tasks", "records", "failed", "MAPE %", "median %", "RMSE of log(time)", "top-1", "top-5",
               "pairwise"});
  const auto row = [&](const std::string& name, const learn::Scores& s) {
    table.add({name, std::to_string(s.tasks), std::to_string(s.records), std::to_string(s.failed),
               percent(s.mape, ranks_only), percent(s.mape_median, ranks_only),
               ranks_only ? "-" : fmt::format("{:.3f}", s.rmse_log), fmt::format("{:.3f}", s.top1),
               fmt::format("{:.3f}", s.top5), fmt::format("{:.3f}", s.pairwise)});
  };
  for (const auto& [name, s] : e.by_operator()) row(name, s);
  const auto devices = e.by_device();
  for (const auto& [name, s] : devices) row("on " + name, s);
  if (devices.size() > 1) row("all", e.total());
  print_lines(table.text());
  if (!ranks_only && e.log_sigma() > 0) {
    print_out(
        "RMSE {}; the predicted 68 %, 90 % and 95 % intervals contain {:.0f} %, {:.0f} % and {:.0f} % of the "
        "measured times\n",
        format_seconds(e.total().rmse), 100 * e.coverage().first, 100 * e.coverage90(),
        100 * e.coverage().second);
    if (e.without_interval() > 0)
      print_out("{} of {} predictions have no interval\n", e.without_interval(), e.total().records);
  }
}

// Returns the records of the part, restricted to the named devices.
Result<std::vector<int64_t>> chosen_records(const EvalCommand& command, const engine::ModelData& data,
                                            const learn::Split& split) {
  TS_ASSIGN_OR_RETURN(const learn::Part part, engine::parse_part(command.part));
  std::vector<int64_t> records = split.records_of(part);
  if (command.devices.empty()) return records;
  TS_ASSIGN_OR_RETURN(const auto names, data.store_names(command.devices));
  return learn::records_of_devices(data.store(), records, names);
}

// Reads seconds that another program has predicted, one line per record.
Result<std::vector<double>> read_seconds(const std::string& path, size_t count) {
  TS_ASSIGN_OR_RETURN(const auto reader, record::LineReader::open(path, size_t{1} << 10));
  std::vector<double> out;
  record::LineReader::Line line;
  while (true) {
    TS_ASSIGN_OR_RETURN(const bool more, reader->next(line));
    if (!more) break;
    double number = 0;
    const char* end = line.text.data() + line.text.size();
    const auto [stop, error] = std::from_chars(line.text.data(), end, number);
    if (error != std::errc() || stop != end || !std::isfinite(number) || number <= 0)
      return Error{ErrorCode::kCorrupt, path + ":" + std::to_string(out.size() + 1),
                   "is not a positive number of seconds"};
    out.push_back(number);
  }
  if (out.size() != count)
    return Error{
        ErrorCode::kMismatch, path,
        fmt::format(
            "has {} lines, but the part has {} records (`dataset export --part` writes them in order)",
            out.size(), count)};
  return out;
}

// Scores the predictions of another program.
Status eval_predicted(const EvalCommand& command) {
  TS_ASSIGN_OR_RETURN(const engine::ModelData data, engine::ModelData::open(command.store));
  TS_ASSIGN_OR_RETURN(const learn::Split split, data.load_split(command.splits.front()));
  TS_ASSIGN_OR_RETURN(const auto records, chosen_records(command, data, split));
  TS_ASSIGN_OR_RETURN(const auto seconds, read_seconds(command.predicted, records.size()));
  learn::Evaluation e;
  for (size_t i = 0; i < records.size(); ++i) {
    const learn::Store::Entry entry = data.store().entry(records[i]);
    // As for models: programs whose features could not be extracted are not predicted.
    if (entry.leaves == 0) continue;
    learn::Prediction prediction;
    prediction.seconds = seconds[i];
    e.add(data.store().workloads()[entry.workload], data.devices()[entry.device]->name,
          entry.failed() ? INFINITY : entry.mean_seconds, prediction);
  }
  if (e.total().records == 0)
    return Error{ErrorCode::kInvalidArgument, "", "there are no measured programs to evaluate on"};
  if (!command.json) {
    print_people(e, false);
    return {};
  }
  OrderedJson out = learn::to_json(e.total(), false);
  out["by_operator"] = groups(e.by_operator(), false);
  out["by_device"] = groups(e.by_device(), false);
  print_json(out);
  return {};
}

Status eval_one(const EvalCommand& command) {
  TS_ASSIGN_OR_RETURN(const auto model, lab::cost_model_kinds().load(command.models.front()));
  const learn::ModelCard& card = model->card();
  TS_ASSIGN_OR_RETURN(const auto writer, PredictionWriter::open(command.predictions));
  const SystemClock clock;
  ScatterPlot plot;
  lab::EvaluationRun run(*model, command.threads.count(), clock,
                         [&](const lab::EvaluatedProgram& p, const learn::Prediction& prediction) {
                           if (!command.plot.empty()) plot.add(p.device->name, p.seconds, prediction.seconds);
                           return writer->write(p, prediction);
                         });
  int64_t corrupt = 0;
  if (!command.store.empty()) {
    TS_ASSIGN_OR_RETURN(const engine::ModelData data, engine::ModelData::open(command.store));
    TS_ASSIGN_OR_RETURN(const learn::Split split, data.load_split(command.splits.front()));
    if (card.store_hash == data.store().content_hash() && card.split != split.content_hash())
      warn(
          "the model was trained with another split of this store, so it may have been trained on these "
          "records");
    TS_ASSIGN_OR_RETURN(const auto records, chosen_records(command, data, split));
    TS_RETURN_IF_ERROR(lab::evaluate_store(data.store(), data.devices(), records, model->inputs(), run));
  } else {
    TS_ASSIGN_OR_RETURN(const target::Device device, engine::find_device(command.device));
    TS_RETURN_IF_ERROR(evaluate_files(command, device, model->inputs().trace, run, corrupt));
  }
  TS_RETURN_IF_ERROR(writer->commit());

  const learn::Evaluation& e = run.evaluation();
  const learn::Scores total = e.total();
  if (total.records == 0)
    return Error{ErrorCode::kInvalidArgument, "", "there are no measured programs to evaluate on"};
  if (!command.plot.empty()) {
    TS_ASSIGN_OR_RETURN(const auto picture, record::AtomicFileWriter::open(command.plot));
    TS_RETURN_IF_ERROR(
        picture->write(plot.svg(fmt::format("{}: {} programs, MAPE {:.1f} % (median {:.1f} %)", card.kind,
                                            total.records, 100 * total.mape, 100 * total.mape_median),
                                "eval")));
    TS_RETURN_IF_ERROR(picture->commit());
  }
  const int64_t seen = e.seen_workloads(card.workloads);
  if (seen > 0) warn(fmt::format("the model was trained on {} of these {} workloads", seen, e.workloads()));
  if (!command.json) {
    print_people(e, model->ranks_only());
    print_out("{:.0f} programs per second\n", run.programs_per_second());
    return {};
  }
  OrderedJson out = learn::to_json(total, model->ranks_only());
  out["seen_tasks"] = seen;
  out["corrupt"] = corrupt;
  out["programs_per_second"] = run.programs_per_second();
  out["coverage1"] = e.coverage().first;
  out["coverage90"] = e.coverage90();
  out["coverage2"] = e.coverage().second;
  out["without_interval"] = e.without_interval();
  out["model"] = card.kind;
  out["by_operator"] = groups(e.by_operator(), model->ranks_only());
  out["by_device"] = groups(e.by_device(), model->ranks_only());
  print_json(out);
  return {};
}

Status eval_rounds(const EvalCommand& command) {
  TS_ASSIGN_OR_RETURN(const engine::ModelData data, engine::ModelData::open(command.store));
  TS_ASSIGN_OR_RETURN(const learn::Split split, data.load_split(command.splits.front()));
  TS_ASSIGN_OR_RETURN(const auto records, chosen_records(command, data, split));
  RoundsEvaluation evaluation{command.models, command.curves, command.plot, command.json};
  evaluation.curves.threads = command.threads.count();
  return evaluate_rounds(evaluation, data, split, records);
}

Status check_places(const EvalCommand& command) {
  std::vector<OutputPath> outputs;
  if (!command.predictions.empty())
    outputs.push_back({"--predictions", command.predictions, OutputKind::kPredictions});
  if (!command.plot.empty()) outputs.push_back({"--plot", command.plot, OutputKind::kPlot});
  std::vector<InputPath> inputs = {{"--workloads", command.workloads},
                                   {"--store", command.store},
                                   {"--predicted", command.predicted},
                                   {"--device", device_file(command.device)}};
  for (const std::string& path : command.models) inputs.push_back({"--model", path});
  for (const std::string& path : command.records) inputs.push_back({"--records", path});
  for (const std::string& path : command.splits) inputs.push_back({"--split", path});
  for (const std::string& path : command.databases) inputs.push_back({"--from-db", path});
  return check_outputs(outputs, inputs, command.force);
}

Status eval(const EvalCommand& command) {
  TS_RETURN_IF_ERROR(check_places(command));
  if (!command.predicted.empty()) return eval_predicted(command);
  if (!command.databases.empty())
    return evaluate_profiled(
        {command.models.front(), command.databases, command.tasks, command.sets, command.json});
  if (command.curves.rounds > 0) return eval_rounds(command);
  if (command.table) {
    TS_ASSIGN_OR_RETURN(const engine::ModelData data, engine::ModelData::open(command.store));
    TS_ASSIGN_OR_RETURN(const auto text,
                        evaluation_table(data, command.models, command.splits, command.threads.count()));
    print_lines(text);
    return {};
  }
  return eval_one(command);
}

}  // namespace

void add_eval_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<EvalCommand>();
  CLI::App* sub = app.add_subcommand("eval", "Compare a cost model's predictions with measured times");
  auto* model =
      sub->add_option("--model", o->models,
                      "File of a cost model. With --table: [NAME=]FILE (repeatable). With --rounds: "
                      "a file, or a kind of model to train (repeatable)");
  model->allow_extra_args(false);
  auto* records = sub->add_option(
      "--records", o->records, "Evaluate on files of Ansor or TenSet records, plain or compressed with zstd");
  auto* workloads = sub->add_option(
      "--workloads", o->workloads, "JSON file that maps each workload key of the records to its compute DAG");
  auto* device = sub->add_option("--device", o->device,
                                 "Device that the records were measured on (see `tensorsmith devices list`)");
  auto* store = sub->add_option("--store", o->store, "Evaluate on this store of measured programs");
  auto* split = sub->add_option("--split", o->splits,
                                "File of a split of the store. With --table: [NAME=]FILE (repeatable)");
  split->allow_extra_args(false);
  sub->add_option("--part", o->part, "Part of the split to evaluate on: train, validation, test or unused")
      ->capture_default_str();
  sub->add_option("--devices", o->devices, "Use only the store's records of these devices (comma-separated)")
      ->delimiter(',');
  auto* databases =
      sub->add_option("--from-db", o->databases,
                      "Evaluate how well the model ranks the profiled programs of this record database "
                      "(repeatable); the ranking is tested on random sets of programs of the same task");
  databases->allow_extra_args(false);
  auto* tasks = sub->add_option(
      "--task", o->tasks, "With --from-db: use only tasks whose name begins with this text (repeatable)");
  tasks->allow_extra_args(false)->needs(databases);
  for (CLI::Option* option : add_set_options(*sub, o->sets)) option->needs(databases);
  add_seed(*sub, o->sets.seed, "Seed of the random sets")->needs(databases);
  auto* predictions =
      sub->add_option("--predictions", o->predictions,
                      "Write the measured and predicted seconds of each program to this file, as JSON lines");
  auto* predicted =
      sub->add_option("--predicted", o->predicted,
                      "Evaluate predictions of another program instead of a model: this file has one line "
                      "for each record of the part, with the predicted seconds (`dataset export "
                      "--without-times` writes the records for such a program)");
  auto* plot = sub->add_option("--plot", o->plot,
                               "Write a plot of predicted against measured seconds, or with --rounds of the "
                               "learning curves, to this SVG file");
  auto* rounds = add_whole(
      *sub, "--rounds", o->curves.rounds, 0, 1'000'000,
      "Show learning curves over this many rounds (0 = none). The programs of a task are predicted in "
      "rounds, in the order of the store, and a model learns from a round after predicting it. Each model is "
      "shown pre-trained (then fine-tuned on the task's earlier rounds) and from scratch (trained on these "
      "rounds alone). A kind of model is pre-trained on the split's training part");
  auto* batch = add_whole(*sub, "--batch", o->curves.batch, 2, 1'000'000,
                          "With --rounds: number of programs in a round");
  auto* seeds = add_whole(*sub, "--seeds", o->curves.seeds, 1, 1000,
                          "With --rounds: number of trainings of each model, each with another seed");
  auto* shuffle =
      sub->add_flag("--shuffle", o->curves.shuffled,
                    "With --rounds: shuffle the programs of each task, differently for each seed");
  auto* table = sub->add_flag("--table", o->table,
                              "Print a Markdown table with a row for each model and a column for each split. "
                              "Each model is evaluated on the test part of the split that it was trained "
                              "with; models with the same name share a row, with their standard deviation");
  add_force(*sub, o->force);
  o->threads.add_to(*sub, "Number of threads to use");
  auto* json = sub->add_flag("--json", o->json, "Print the result as one JSON object, on the last line");
  records->needs(workloads)->needs(device)->excludes(store);
  store->needs(split);
  databases->excludes(records)->excludes(store)->excludes(predictions)->excludes(plot)->excludes(table);
  predicted->needs(store)->excludes(model)->excludes(predictions)->excludes(plot)->excludes(table);
  rounds->needs(store)->excludes(predicted)->excludes(predictions)->excludes(table);
  for (CLI::Option* option : {batch, seeds, shuffle}) option->needs(rounds);
  table->needs(store)->excludes(predictions)->excludes(plot)->excludes(json);
  sub->callback([o, model, records, store, databases, predicted, &exit_code] {
    if (model->count() == 0 && predicted->count() == 0) throw CLI::RequiredError("--model or --predicted");
    if (records->count() == 0 && store->count() == 0 && databases->count() == 0)
      throw CLI::RequiredError("--records, --store or --from-db");
    if (!o->table && o->curves.rounds == 0 && o->models.size() > 1)
      throw CLI::ValidationError("more than one model", "needs --table or --rounds");
    if (!o->table && o->splits.size() > 1) throw CLI::ValidationError("more than one split", "needs --table");
    exit_code = run_command([&] { return eval(*o); });
  });
}

}  // namespace tensorsmith::tools
