#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/shipped_file.h"
#include "engine/predict/model_data.h"
#include "lab/evaluation_run.h"
#include "lab/kinds/kinds.h"
#include "learn/dataset/import.h"
#include "learn/latency/parameters.h"
#include "learn/latency/queries.h"
#include "measure/profile/simulate.h"
#include "record/database.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/import_summary.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"
#include "tools/train_profile.h"
#include "tools/training_curves.h"
#include "tools/training_display.h"

namespace tensorsmith::tools {
namespace {

using Json = nlohmann::json;

struct TrainCommand {
  std::string kind, store, split, init, checkpoint, output;
  std::vector<std::string> databases, devices, parameters, tasks, without;
  std::string features = "static", profiler = measure::kSimulation, tensorboard;
  uint64_t seed = 0;
  WorkingThreads threads;
  ProcessesOptions processes;
  int max_tasks = 0, max_records = 0;
  bool adapt = false, quiet = false, json = false, force = false;
};

// Returns a command line with all options that determine the model, for its card; leaves out the
// output path and the number of threads.
std::string command_line(const TrainCommand& c) {
  std::string out = "tensorsmith train";
  if (c.databases.empty()) out += " --store " + c.store + " --split " + c.split;
  for (const std::string& database : c.databases) out += " --from-db " + record::shown_database(database);
  out += " --seed " + std::to_string(c.seed);
  if (!c.kind.empty()) out += " --model " + c.kind;
  if (!c.init.empty()) out += " --init " + c.init;
  for (const std::string& device : c.devices) out += " --devices " + device;
  for (const std::string& parameter : c.parameters) out += " --param " + parameter;
  if (c.max_tasks > 0) out += " --max-tasks " + std::to_string(c.max_tasks);
  if (c.max_records > 0) out += " --max-records " + std::to_string(c.max_records);
  if (c.adapt) out += " --adapt";
  if (c.features != "static") out += " --features " + c.features;
  if (c.profiler != measure::kSimulation) out += " --profiler " + c.profiler;
  for (const std::string& task : c.tasks) out += " --task " + task;
  for (const std::string& model : c.without) out += " --without " + model;
  return out;
}

// Shares of a user's tasks that are held out from training.
constexpr double kValidationShare = 0.1, kTestShare = 0.15;

// Makes a store of the databases and a split by task, beside the model, so that other models can be
// compared on them.
Status make_data(const TrainCommand& command) {
  learn::ImportOptions options;
  options.threads = command.threads.count();
  TS_ASSIGN_OR_RETURN(const learn::ImportReport report,
                      learn::import_databases(command.databases, command.store, options));
  for (const auto& problem : report.problems) warn(problem.place + ": " + problem.reason);
  TS_ASSIGN_OR_RETURN(const auto store, learn::Store::open(command.store));
  learn::SplitOptions split;
  split.kind = learn::SplitKind::kByTask;
  split.validation = kValidationShare;
  split.test = kTestShare;
  split.seed = command.seed;
  TS_ASSIGN_OR_RETURN(const learn::Split made, learn::make_split(*store, split));
  TS_RETURN_IF_ERROR(learn::save_split(made, command.split));
  if (!command.quiet) {
    const std::string left_out = left_out_text(report);
    print_error("{} records of {} tasks written to the store {}, their split to {}{}{}\n", report.records,
                store->workloads().size(), command.store, command.split, left_out.empty() ? "" : "; ",
                left_out);
  }
  return {};
}

// Scores on the test part, whose tasks the model has not seen.
Result<learn::Scores> test_scores(const engine::ModelData& data, const learn::Split& split,
                                  const learn::CostModel& model, int threads) {
  const SystemClock clock;
  lab::EvaluationRun run(model, threads, clock);
  TS_RETURN_IF_ERROR(lab::evaluate_store(data.store(), data.devices(), split.records_of(learn::Part::kTest),
                                         model.inputs(), run));
  return run.evaluation().total();
}

// Compares the model with the shipped one, to show what the user's records are worth.
Result<Json> compare_on_test(const engine::ModelData& data, const learn::Split& split,
                             const learn::CostModel& model, const TrainCommand& command) {
  std::vector<std::pair<std::string, std::unique_ptr<learn::CostModel>>> others;
  if (const std::string shipped = shipped_file(kCostModelFile); !shipped.empty()) {
    TS_ASSIGN_OR_RETURN(auto other, lab::cost_model_kinds().load(shipped));
    others.emplace_back("shipped", std::move(other));
  }
  std::vector<std::pair<std::string, const learn::CostModel*>> all = {{"trained", &model}};
  for (const auto& [name, other] : others) all.emplace_back(name, other.get());
  Json out = Json::object();
  Table table(
      {"on held-out tasks", "tasks", "MAPE %", "median %", "top-1", "top-5", "tasks in its training"});
  for (const auto& [name, one] : all) {
    TS_ASSIGN_OR_RETURN(const learn::Scores s, test_scores(data, split, *one, command.threads.count()));
    int64_t seen = 0;
    std::set<uint32_t> tasks;
    for (const int64_t i : split.records_of(learn::Part::kTest)) tasks.insert(data.store().entry(i).workload);
    const auto& known = one->card().workloads;
    for (const uint32_t task : tasks)
      seen += std::binary_search(known.begin(), known.end(), data.store().workloads()[task].key) ? 1 : 0;
    table.add({name, std::to_string(s.tasks), fmt::format("{:.1f}", 100 * s.mape),
               fmt::format("{:.1f}", 100 * s.mape_median), fmt::format("{:.3f}", s.top1),
               fmt::format("{:.3f}", s.top5), std::to_string(seen)});
    out[name] = learn::to_json(s, one->ranks_only());
    out[name]["seen_tasks"] = seen;
  }
  if (command.json) return out;
  if (split.records_of(learn::Part::kTest).empty()) {
    print_out("there are too few tasks to hold some out, so the model's error on new tasks is unknown\n");
  } else {
    print_lines(table.text());
  }
  return out;
}

// Returns the inode number of the file, which distinguishes a new file from the old one.
std::optional<uint64_t> file_number(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_ino;
}

// Checks that the command overwrites none of its inputs and no other kind of file.
Status check_training_places(const TrainCommand& command, const std::string& checkpoint) {
  std::vector<OutputPath> outputs = {{"-o", command.output, OutputKind::kLatencyModel},
                                     {"--checkpoint", checkpoint, OutputKind::kCheckpoint}};
  std::vector<InputPath> inputs = {{"--init", command.init}};
  if (command.databases.empty()) {
    inputs.push_back({"--store", command.store});
    inputs.push_back({"--split", command.split});
  } else {
    outputs.push_back({"the store of -o", command.store, OutputKind::kStore});
    outputs.push_back({"the split of -o", command.split, OutputKind::kSplit});
  }
  for (const std::string& database : command.databases) inputs.push_back({"--from-db", database});
  return check_outputs(outputs, inputs, command.force);
}

// A training on a store, by this process and perhaps others.
struct StoreTraining {
  learn::TrainingControl control;
  std::string checkpoint;                  // of process 0
  std::unique_ptr<learn::CostModel> base;  // the model to fine-tune, or null
  std::unique_ptr<learn::CostModelTrainer> trainer;
  learn::TrainingData records;
};

// Finds the trainer of the model's kind, and the model that it begins with.
Status choose_trainer(const TrainCommand& command, int processes, StoreTraining& training) {
  TS_ASSIGN_OR_RETURN(const Json parameters, learn::parse_parameters(command.parameters));
  std::string kind = command.kind;
  if (!command.init.empty()) {
    TS_ASSIGN_OR_RETURN(training.base, lab::cost_model_kinds().load(command.init));
    if (kind.empty()) kind = training.base->card().kind;
  }
  TS_ASSIGN_OR_RETURN(training.trainer, lab::cost_model_kinds().make_trainer(kind, parameters));
  if (processes > 1 && !training.trainer->several_processes())
    return Error{ErrorCode::kInvalidArgument, "--ranks",
                 kind + " can only be trained by one process; several processes can train neural models"};
  return {};
}

// Trains the model. Process 0 shows the progress, writes the model, and removes the checkpoint.
Result<std::unique_ptr<learn::CostModel>> train_and_save(const TrainCommand& command, const Clock& clock,
                                                         StoreTraining& training) {
  learn::TrainingControl& control = training.control;
  bool owns_checkpoint = false;
  control.owns_checkpoint = [&] { owns_checkpoint = true; };
  const std::optional<uint64_t> found = file_number(control.checkpoint);
  if (found && !command.quiet) print_error("continuing from {}\n", training.checkpoint);
  TrainingDisplay display(clock, std::ssize(training.records.train));
  std::optional<TrainingCurves> curves;
  if (!command.tensorboard.empty() && control.processes.rank == 0) {
    TS_ASSIGN_OR_RETURN(curves, TrainingCurves::create(command.tensorboard, clock));
    control.validation_curves = true;
  }
  if (!command.quiet || curves) {
    control.progress = [&](const learn::TrainingProgress& progress) {
      if (!command.quiet) display.update(progress);
      if (curves) curves->add(progress);
    };
  }
  auto model = training.base ? training.trainer->fine_tune(*training.base, training.records, control)
                             : training.trainer->train(training.records, control);
  if (!model.ok()) {
    if (model.error().code != ErrorCode::kCancelled) return model.error();
    return Error{ErrorCode::kCancelled, "",
                 model.error().reason + (file_number(control.checkpoint)
                                             ? "; the same command continues from " + training.checkpoint
                                             : std::string())};
  }
  if (control.processes.rank > 0) return model;
  if (curves) TS_RETURN_IF_ERROR(curves->finish());
  TS_RETURN_IF_ERROR((*model)->save(command.output));
  // Kinds of models without checkpoints do not use this file, so it must not be removed for them.
  std::error_code ignored;
  if (owns_checkpoint) std::filesystem::remove(training.checkpoint, ignored);
  return model;
}

// `test`: scores on the tasks that were held out, as JSON.
void print_trained(const TrainCommand& command, const learn::ModelCard& card, double seconds,
                   const Json& test) {
  const Json metrics = parse_json<Json>(card.metrics);
  if (command.json) {
    print_json(Json{{"model", card.kind},
                    {"test", test},
                    {"records", card.records},
                    {"workloads", card.workloads.size()},
                    {"devices", card.devices},
                    {"seconds", seconds},
                    {"bytes", std::filesystem::file_size(command.output)},
                    {"validation", metrics}});
    return;
  }
  print_out("{} trained on {} records in {}; {} written to {}\n", card.kind, card.records,
            format_duration(seconds), format_bytes(std::filesystem::file_size(command.output)),
            command.output);
  if (metrics.contains("mape") && metrics["mape"].is_number()) {
    print_out("errors on the validation part: MAPE {:.1f} % (median {:.1f} %), top-1 {:.3f}, top-5 {:.3f}\n",
              100 * metrics["mape"].get<double>(), 100 * metrics["mape_median"].get<double>(),
              metrics["top1"].get<double>(), metrics["top5"].get<double>());
  }
}

Status train(TrainCommand& command) {
  if (command.features == "profile")
    return train_on_profiles({command.kind, command.databases, command.parameters, command.tasks,
                              command.without, command.profiler, command.output, command_line(command),
                              command.seed, command.force, command.json});
  if (!command.without.empty() || !command.tasks.empty())
    return Error{ErrorCode::kInvalidArgument, command.tasks.empty() ? "--without" : "--task",
                 "works only with --features profile; otherwise the split selects the tasks"};
  TS_ASSIGN_OR_RETURN(const learn::Processes processes, command.processes.get());
  const bool from_databases = !command.databases.empty();
  if (from_databases && processes.count > 1)
    return Error{ErrorCode::kInvalidArgument, "--ranks",
                 "needs --store and --split, with the same files for all processes"};
  if (processes.rank > 0) command.quiet = true;
  if (from_databases) {
    command.store = command.output + ".store";
    command.split = command.output + ".split";
    if (command.kind.empty() && command.init.empty()) command.kind = "tensorsmith";
  }
  StoreTraining training;
  training.checkpoint = command.checkpoint.empty() ? command.output + ".checkpoint" : command.checkpoint;
  // Only process 0 writes.
  if (processes.rank == 0) TS_RETURN_IF_ERROR(check_training_places(command, training.checkpoint));
  if (from_databases) TS_RETURN_IF_ERROR(make_data(command));
  TS_ASSIGN_OR_RETURN(const engine::ModelData data, engine::ModelData::open(command.store));
  TS_ASSIGN_OR_RETURN(const learn::Split split, data.load_split(command.split));
  TS_RETURN_IF_ERROR(choose_trainer(command, processes.count, training));
  TS_ASSIGN_OR_RETURN(training.records, data.training_data(split, command.devices, command.adapt));
  if (command.max_tasks > 0 || command.max_records > 0)
    training.records.train = learn::some_records(data.store(), training.records.train, command.max_tasks,
                                                 command.max_records, command.seed);
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  training.control = training_control(processes, command.seed, command.threads.count(), command_line(command),
                                      training.checkpoint);
  training.control.split = split.content_hash();
  TS_ASSIGN_OR_RETURN(const auto model, train_and_save(command, clock, training));
  if (processes.rank > 0) return {};
  const double seconds = clock.monotonic_seconds() - start;
  Json test = Json::object();
  if (from_databases) {
    TS_ASSIGN_OR_RETURN(test, compare_on_test(data, split, *model, command));
  }
  print_trained(command, model->card(), seconds, test);
  return {};
}

}  // namespace

void add_train_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<TrainCommand>();
  CLI::App* sub = app.add_subcommand("train", "Train a cost model on measured programs");
  std::string kinds;
  for (const std::string& kind : lab::cost_model_kinds().names()) kinds += (kinds.empty() ? "" : ", ") + kind;
  auto* model = sub->add_option("--model", o->kind, "Kind of model: " + kinds);
  auto* store =
      sub->add_option("--store", o->store, "Store of measured programs (see `tensorsmith dataset`)");
  auto* split = sub->add_option("--split", o->split,
                                "File of a split of the store; its training and validation parts are used, "
                                "the other parts are not read");
  store->needs(split);
  split->needs(store);
  auto* databases =
      sub->add_option("--from-db", o->databases,
                      "Train on the records of this database instead of a store (repeatable). A store and a "
                      "split are written beside the output; some tasks are held out, and the model is "
                      "compared on them with the cost model that comes with Tensorsmith");
  databases->allow_extra_args(false)->excludes(store);
  sub->add_option("--features", o->features,
                  "Input of the model: static (computed from the program alone) or profile (the counters of "
                  "`tensorsmith profile`). With profile, --model is two-step (predicts the counters of a "
                  "program, and its time from them) or profile (reads measured counters)")
      ->check(CLI::IsMember({"static", "profile"}))
      ->capture_default_str();
  sub->add_option(
         "--task", o->tasks,
         "With --features profile: train only on tasks whose name begins with this text (repeatable)")
      ->allow_extra_args(false);
  sub->add_option("--profiler", o->profiler,
                  "With --features profile: profiler whose counters are used (see `tensorsmith profile`)")
      ->capture_default_str();
  sub->add_option("--without", o->without,
                  "With --features profile: leave out the tasks of this model (repeatable), for instance to "
                  "test on them")
      ->allow_extra_args(false);
  sub->add_option("--devices", o->devices, "Train only on the records of these devices (comma-separated)")
      ->delimiter(',');
  sub->add_option("--param", o->parameters, "Hyperparameter of the model, NAME=VALUE (repeatable)")
      ->allow_extra_args(false);
  auto* init =
      sub->add_option("--init", o->init, "Model to fine-tune on the records, instead of training a new one");
  sub->add_flag("--adapt", o->adapt,
                "Give the programs of the test part, without their times, to kinds of models that adapt to "
                "the programs they will predict");
  add_whole(*sub, "--max-tasks", o->max_tasks, 0, 1000000,
            "Train on this many workloads, chosen at random (0 = all)");
  add_whole(*sub, "--max-records", o->max_records, 0, 1000000,
            "Train on this many programs of each task, chosen at random (0 = all)");
  add_seed(*sub, o->seed,
           "Seed of the training; the same seed, data and hyperparameters give the same model");
  o->threads.add_to(*sub, "Number of threads for training");
  o->processes.add_to(*sub);
  sub->add_option("--checkpoint", o->checkpoint,
                  "File that keeps the state of an interrupted training; the same command continues from it "
                  "(default: OUTPUT.checkpoint)");
  sub->add_option("-o,--output", o->output, "File of the new model; an existing model file is replaced")
      ->required();
  sub->add_option("--tensorboard", o->tensorboard,
                  "Folder for TensorBoard event files with the training and validation losses; a model with "
                  "several members gets one run for each member");
  add_force(*sub, o->force);
  sub->add_flag("--quiet", o->quiet, "Show no progress");
  sub->add_flag("--json", o->json, "Print the result as JSON on standard output");
  sub->callback([o, model, init, store, databases, &exit_code] {
    if (store->count() == 0 && databases->count() == 0) throw CLI::RequiredError("--store or --from-db");
    if (model->count() == 0 && init->count() == 0 && databases->count() == 0)
      throw CLI::RequiredError("--model or --init");
    exit_code = run_command([&] { return train(*o); });
  });
}

}  // namespace tensorsmith::tools
