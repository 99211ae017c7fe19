// `lm`: language models that write schedules: corpus, training, generation.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "engine/device/gpu_device.h"
#include "engine/language/language_decoder.h"
#include "engine/language/sketch_contexts.h"
#include "engine/tune/prepare_tasks.h"
#include "engine/tune/tune_sources.h"
#include "lab/language_corpus.h"
#include "lab/written_programs.h"
#include "learn/lm/language_training.h"
#include "learn/lm/prompt.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/language_commands.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"
#include "tools/training_display.h"

namespace tensorsmith::tools {
namespace {

using Json = nlohmann::json;
using learn::lm::LanguageModel;

Result<std::vector<engine::ModelSource>> sources_of(const std::vector<std::string>& models) {
  std::vector<engine::ModelSource> sources;
  for (const std::string& path : models) {
    ModelOptions options;
    options.path = path;
    TS_ASSIGN_OR_RETURN(sources.emplace_back(), options.source());
  }
  return sources;
}

// --- lm corpus

struct CorpusCommand {
  std::vector<std::string> models, devices, databases, held_out;
  RecordOptions records;
  double hold_out_share = 0;
  std::string output;
  int unmeasured = 100, measured = 96;
  uint64_t seed = 0;
  WorkingThreads threads;
  bool quiet = false, json = false, force = false;
};

Status add_records(const CorpusCommand& command, const lab::CorpusOptions& options,
                   learn::lm::Corpus& corpus) {
  const auto wanted = [&](const std::string& key) {
    return options.held_out.count(key) == 0 && !lab::in_share(key, command.hold_out_share);
  };
  TS_ASSIGN_OR_RETURN(const auto recorded, command.records.read(wanted));
  return lab::add_recorded(corpus, recorded.tasks, options.measured, options.threads, catch_interrupts());
}

Status corpus(const CorpusCommand& command) {
  std::vector<InputPath> inputs;
  for (const std::string& path : command.databases) inputs.push_back({"--db", path});
  for (const std::string& path : command.models) inputs.push_back({"model", path});
  for (auto& input : command.records.inputs()) inputs.push_back(std::move(input));
  TS_RETURN_IF_ERROR(check_outputs({{"-o", command.output, OutputKind::kCorpus}}, inputs, command.force));
  lab::CorpusOptions options;
  for (const std::string& spec : command.devices) {
    TS_ASSIGN_OR_RETURN(options.devices.emplace_back(), engine::find_device(spec));
    if (options.devices.back().kind() != target::DeviceKind::kCpu)
      return Error{ErrorCode::kUnsupported, "--device " + spec,
                   "language models write schedules for CPUs only; name a CPU"};
  }
  options.databases = command.databases;
  options.unmeasured = command.unmeasured;
  options.measured = command.measured;
  options.seed = command.seed;
  options.threads = command.threads.count();
  TS_ASSIGN_OR_RETURN(const auto held_out, sources_of(command.held_out));
  TS_ASSIGN_OR_RETURN(const auto forbidden, engine::load_tasks(held_out));
  for (const auto& shared : forbidden) options.held_out.insert(shared.task.key);
  TS_ASSIGN_OR_RETURN(const auto models, sources_of(command.models));
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  double last = start;
  const auto progress = [&](const lab::CorpusProgress& p) {
    const double now = clock.monotonic_seconds();
    if (command.quiet || now - last < 5) return;
    last = now;
    print_error("{} of {} tasks, {} sentences\n", p.tasks, p.of, p.sentences);
  };
  TS_ASSIGN_OR_RETURN(auto made, lab::make_corpus(models, options, progress, catch_interrupts()));
  if (command.records.given()) TS_RETURN_IF_ERROR(add_records(command, options, made));
  if (made.sentences.empty())
    return Error{ErrorCode::kInvalidArgument, "corpus",
                 "there are no programs; name models, or databases that have tasks beside the held-out ones"};
  TS_RETURN_IF_ERROR(learn::lm::write_corpus(made, command.output));
  size_t tokens = 0, measured = 0;
  for (const auto& sentence : made.sentences) {
    tokens += sentence.allowed.size();
    measured += sentence.quality != learn::lm::Quality::kUnmeasured ? 1 : 0;
  }
  const double seconds = clock.monotonic_seconds() - start;
  if (command.json) {
    print_json(Json{{"tasks", made.tasks.size()},
                    {"prompts", made.prompts.size()},
                    {"sentences", made.sentences.size()},
                    {"measured", measured},
                    {"tokens", tokens},
                    {"held_out_tasks", options.held_out.size()},
                    {"seconds", seconds}});
    return {};
  }
  print_out(
      "{} sentences ({} of measured programs) with {} tokens for {} prompts of {} tasks made in {}; {} "
      "written to {}\n",
      made.sentences.size(), measured, tokens, made.prompts.size(), made.tasks.size(),
      format_duration(seconds), format_bytes(std::filesystem::file_size(command.output)), command.output);
  return {};
}

// --- lm pretrain, lm finetune

struct LmTrainCommand {
  std::string corpus, base, checkpoint, output;
  learn::lm::LanguageTraining training;
  learn::lm::PromptOptions prompting;  // only for a model trained from scratch
  double worst = 1;                    // largest relative slowdown of the measured sentences that are used
  uint64_t seed = 0;
  WorkingThreads threads;
  ProcessesOptions processes;
  bool quiet = false, json = false, force = false;
};

std::string command_line(const LmTrainCommand& c) {
  const auto& t = c.training;
  std::string out = c.base.empty()
                        ? fmt::format("tensorsmith lm pretrain {} --width {} --heads {} --layers {}",
                                      c.corpus, t.sizes.width, t.sizes.heads, t.sizes.layers)
                        : fmt::format("tensorsmith lm finetune {} {} --within {}", c.base, c.corpus, c.worst);
  if (t.preference > 0) out += fmt::format(" --preference {}", t.preference);
  if (!c.prompting.device) out += " --no-device";
  if (!t.masked) out += " --no-mask";
  if (t.mixed_precision) out += " --mixed-precision";
  return out + fmt::format(" --epochs {} --learning-rate {} --seed {}", t.epochs, t.learning_rate, c.seed);
}

Status train(LmTrainCommand& command) {
  const std::string checkpoint =
      command.checkpoint.empty() ? command.output + ".checkpoint" : command.checkpoint;
  TS_ASSIGN_OR_RETURN(const learn::Processes processes, command.processes.get());
  if (processes.rank > 0) command.quiet = true;
  // Only process 0 writes.
  if (processes.rank == 0)
    TS_RETURN_IF_ERROR(check_outputs({{"-o", command.output, OutputKind::kLanguageModel},
                                      {"--checkpoint", checkpoint, OutputKind::kCheckpoint}},
                                     {{"corpus", command.corpus}, {"model", command.base}}, command.force));
  TS_ASSIGN_OR_RETURN(auto read, learn::lm::read_corpus(command.corpus));
  std::optional<LanguageModel> base;
  if (!command.base.empty()) {
    TS_ASSIGN_OR_RETURN(base, learn::lm::read_language_model(command.base));
    command.prompting = base->prompting;
    command.training.unmeasured = false;
    command.training.worst = learn::lm::quality_of(command.worst);
  }
  ThreadPool pool(command.threads.count());
  TS_ASSIGN_OR_RETURN(const auto sentences,
                      lab::CorpusSentences::create(std::move(read), command.prompting, pool));
  if (sentences->left_out() > 0)
    warn(fmt::format("{} sentences are left out because this version does not have their sketches",
                     sentences->left_out()));
  auto& sizes = command.training.sizes;
  sizes.hidden = 4 * sizes.width;
  if (sizes.width % sizes.heads != 0)
    return Error{ErrorCode::kInvalidArgument, "--heads", "must be a divisor of --width"};
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  learn::TrainingControl control =
      training_control(processes, command.seed, command.threads.count(), command_line(command), checkpoint);
  TrainingDisplay display(clock, int64_t{command.training.prompts} * command.training.answers);
  if (!command.quiet) {
    if (std::filesystem::exists(checkpoint)) print_error("continuing from {}\n", checkpoint);
    control.progress = [&](const learn::TrainingProgress& p) { display.update(p); };
  }
  TS_ASSIGN_OR_RETURN(
      const LanguageModel model,
      learn::lm::train_language_model(*sentences, command.training, base ? &*base : nullptr, control));
  if (processes.rank > 0) return {};
  TS_RETURN_IF_ERROR(learn::lm::write_language_model(model, command.output));
  std::error_code ignored;
  std::filesystem::remove(checkpoint, ignored);
  const double seconds = clock.monotonic_seconds() - start;
  const Json metrics = parse_json<Json>(model.metrics);
  if (command.json) {
    print_json(Json{{"parameters", model.parameters()},
                    {"tasks", model.tasks.size()},
                    {"sentences", model.sentences},
                    {"seconds", seconds},
                    {"bytes", std::filesystem::file_size(command.output)},
                    {"metrics", metrics}});
    return {};
  }
  print_out("{:.2f} million parameters trained on {} sentences of {} tasks in {}; {} written to {}\n",
            model.parameters() * 1e-6, model.sentences, model.tasks.size(), format_duration(seconds),
            format_bytes(std::filesystem::file_size(command.output)), command.output);
  print_out("training loss {:.3f} nats per token", metrics["train_loss"].get<double>());
  if (metrics.contains("validation_loss"))
    print_out(", validation loss {:.3f} on tasks left out of training",
              metrics["validation_loss"].get<double>());
  if (metrics.contains("pair_accuracy"))
    print_out(
        "; on those tasks the faster of two programs has the higher likelihood in {:.1f} % of the pairs "
        "(before training: {:.1f} %)",
        100 * metrics["pair_accuracy"].get<double>(), 100 * metrics["pair_accuracy_before"].get<double>());
  print_out("\n");
  return {};
}

// --- lm generate

struct GenerateCommand {
  ModelOptions model;
  DeviceOptions device;
  std::string language_model, task;
  std::vector<std::string> from;
  RecordGeneration records;
  engine::SamplingOptions sampling;
  int count = 10;
  uint64_t seed = 0;
  bool json = false;
};

Status check_generated(const GenerateCommand& command) {
  if (command.records.output.empty()) return {};
  std::vector<InputPath> inputs = {{"model", command.model.path}, {"--lm", command.language_model}};
  for (const std::string& path : command.from) inputs.push_back({"--from", path});
  return check_outputs({{"-o", command.records.output, OutputKind::kProgramLines}}, inputs,
                       command.records.force);
}

Status generate(const GenerateCommand& command) {
  TS_ASSIGN_OR_RETURN(const std::string file, engine::language_model_file(command.language_model));
  TS_ASSIGN_OR_RETURN(const LanguageModel language_model, learn::lm::read_language_model(file));
  if (command.records.records.given())
    return generate_records(
        command.records, language_model,
        {static_cast<size_t>(command.count), command.sampling, language_model.prompting, command.seed},
        command.json);
  if (command.model.path.empty())
    return Error{ErrorCode::kInvalidArgument, "lm generate", "needs the name of a model, or --records"};
  TS_RETURN_IF_ERROR(check_generated(command));
  TS_ASSIGN_OR_RETURN(const target::Device device, command.device.resolve());
  TS_ASSIGN_OR_RETURN(const engine::LoadedModel model, command.model.load());
  lab::WrittenPrograms written;
  written.device = {device.key(), device};
  engine::WarmStart known;
  for (const std::string& path : command.from) TS_RETURN_IF_ERROR(known.add_file(path));
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  engine::DecoderOptions options;
  options.threads = WorkingThreads().count();
  if (command.sampling.beam > 0) options.batch = command.sampling.beam;
  TS_ASSIGN_OR_RETURN(const auto machine, target::probe_local());
  TS_ASSIGN_OR_RETURN(const auto decoder, engine::LanguageDecoder::create(language_model, machine, options));
  const double ready = clock.monotonic_seconds();
  engine::DecodingReport report;
  Json tasks = Json::array();
  size_t programs = 0;
  double writing = 0;
  for (const auto& task : model.partition.tasks) {
    if (!command.task.empty() && task.name.find(command.task) == std::string::npos) continue;
    TS_ASSIGN_OR_RETURN(const auto prepared, engine::prepare_task(task, device));
    const space::DesignSpace& space = prepared->design();
    const auto contexts = engine::sketch_contexts(*prepared, known);
    Rng rng(Hasher().add(command.seed).add(task.key).digest64());
    // Uses the sketch of the untuned schedule.
    const int sketch = prepared->untuned().sketch;
    const auto& context = contexts[static_cast<size_t>(sketch)];
    if (context == nullptr || context->grammar.decisions().empty()) continue;
    const auto prompt =
        learn::lm::make_prompt(task.workload, device, space.describe(sketch), language_model.prompting);
    const double before = clock.monotonic_seconds();
    const engine::GenerateRequest request{static_cast<size_t>(command.count), command.sampling, {}, {}};
    TS_ASSIGN_OR_RETURN(const auto generated,
                        engine::generate(*decoder, prompt, *context, request, rng, report));
    writing += clock.monotonic_seconds() - before;
    programs += generated.size();
    const double untuned = prepared->untuned_estimate();
    Json list = Json::array();
    if (!command.json) print_out("{}: {}\n", task.name, space.describe(sketch));
    std::vector<lab::WrittenProgram> candidates;
    for (const auto& one : generated) candidates.push_back({one.candidate, {}, one.log_likelihood});
    TS_RETURN_IF_ERROR(lab::add_written(*prepared, candidates, written));
    for (const auto& one : generated) {
      const double estimate = space.estimate(one.candidate) / untuned;
      if (command.json)
        list.push_back({{"decisions", one.candidate.decisions},
                        {"log_likelihood", one.log_likelihood},
                        {"estimate_over_untuned", estimate}});
      else
        print_out("  {:8.2f}  {:6.3f}  {}\n", one.log_likelihood, estimate,
                  record::print_decisions(one.candidate.decisions));
    }
    if (command.json) tasks.push_back({{"task", task.name}, {"key", task.key}, {"programs", list}});
  }
  if (written.tasks.empty() && command.task.empty())
    return Error{ErrorCode::kNotFound, command.model.path, "has no task with schedules to choose from"};
  if (written.tasks.empty())
    return Error{ErrorCode::kNotFound, "--task " + command.task,
                 "there is no task whose name contains this text and that has schedules to choose from"};
  if (!command.records.output.empty()) TS_RETURN_IF_ERROR(lab::save_written(written, command.records.output));
  const Json summary{{"programs", programs},
                     {"answers", report.answers},
                     {"dead_ends", report.dead_ends},
                     {"too_long", report.too_long},
                     {"tokens", report.tokens},
                     {"forbidden", report.forbidden},
                     {"seconds_to_compile", ready - start},
                     {"seconds", writing},
                     {"answers_per_second", writing > 0 ? report.answers / writing : 0}};
  if (command.json) {
    print_json(Json{{"tasks", tasks}, {"summary", summary}});
    return {};
  }
  print_out("columns: log likelihood, estimated time relative to the untuned schedule, decisions\n");
  print_out(
      "{} different programs from {} generated answers, all legal; {} more answers stopped because no legal "
      "token was left; {:.0f} answers per second; language model compiled in {}\n",
      programs, report.answers, report.dead_ends, report.answers / std::max(writing, 1e-9),
      format_duration(ready - start));
  if (!command.records.output.empty())
    print_out("programs written to {0}; measure them with `tensorsmith lm measure {0} --db DATABASE`\n",
              command.records.output);
  return {};
}

void add_training_options(CLI::App& sub, LmTrainCommand& o) {
  add_real(sub, "--epochs", o.training.epochs, 0.001, 1e4, "Number of passes over the sentences");
  add_real(sub, "--learning-rate", o.training.learning_rate, 1e-7, 1.0,
           "Highest learning rate during the training");
  sub.add_flag("!--no-mask", o.training.masked,
               "Also include the tokens that the grammar forbids in the loss (for ablation studies)");
  sub.add_flag("--mixed-precision", o.training.mixed_precision,
               "Multiply matrices in bfloat16; this is faster for wide layers on processors and GPUs with "
               "bfloat16 instructions");
  add_seed(sub, o.seed, "Seed of the training; the same seed, corpus and options give the same model");
  o.threads.add_to(sub, "Number of threads for training");
  o.processes.add_to(sub);
  sub.add_option("--checkpoint", o.checkpoint,
                 "File that keeps the state of an interrupted training; the same command continues from it "
                 "(default: OUTPUT.checkpoint)");
  sub.add_option("-o,--output", o.output,
                 "File of the new language model; an existing language model is replaced")
      ->required();
  add_force(sub, o.force);
  sub.add_flag("--quiet", o.quiet, "Show no progress");
  sub.add_flag("--json", o.json, "Print the result as JSON on standard output");
}

void add_corpus(CLI::App& lm, int& exit_code) {
  auto o = std::make_shared<CorpusCommand>();
  CLI::App* sub =
      lm.add_subcommand("corpus", "Write the programs of tasks as sentences to train a language model on");
  sub->add_option(
      "models", o->models,
      "ONNX models or networks of the zoo (zoo:NAME); the corpus gets unmeasured programs of their tasks");
  sub->add_option("--device", o->devices, "Device of the unmeasured programs (repeatable; default: local)")
      ->allow_extra_args(false);
  sub->add_option("--db", o->databases, "Database of measured programs to add (repeatable)")
      ->allow_extra_args(false);
  sub->add_option("--hold-out", o->held_out, "Leave out the tasks of this model (repeatable)")
      ->allow_extra_args(false);
  o->records.add_to(*sub);
  add_share(*sub, "--hold-out-share", o->hold_out_share,
            "With --records: leave out this share of the records' workloads, chosen by their hash");
  add_whole(*sub, "--unmeasured", o->unmeasured, 0, 100'000,
            "Number of unmeasured programs for each task and device");
  add_whole(
      *sub, "--measured", o->measured, 0, 100'000,
      "Largest number of measured programs for each task and device; half of them are the fastest ones");
  add_seed(*sub, o->seed, "Seed of the random programs; the same seed and inputs give the same corpus");
  o->threads.add_to(*sub, "Number of threads to use");
  sub->add_option("-o,--output", o->output, "File of the new corpus; an existing corpus is replaced")
      ->required();
  add_force(*sub, o->force);
  sub->add_flag("--quiet", o->quiet, "Show no progress");
  sub->add_flag("--json", o->json, "Print the result as JSON on standard output");
  sub->callback([o, &exit_code] {
    if (o->devices.empty() && !o->models.empty()) o->devices.emplace_back("local");
    exit_code = run_command([&] { return corpus(*o); });
  });
}

void add_pretrain(CLI::App& lm, int& exit_code) {
  auto o = std::make_shared<LmTrainCommand>();
  CLI::App* sub = lm.add_subcommand("pretrain", "Train a language model on all sentences of a corpus");
  sub->add_option("corpus", o->corpus, "Corpus that `lm corpus` made")->required();
  add_whole(*sub, "--width", o->training.sizes.width, 8, 4096, "Width of the layers");
  add_whole(*sub, "--heads", o->training.sizes.heads, 1, 64, "Number of attention heads");
  add_whole(*sub, "--layers", o->training.sizes.layers, 1, 64, "Number of layers");
  sub->add_flag("!--no-device", o->prompting.device,
                "Leave the device out of the prompts (for ablation studies)");
  add_training_options(*sub, *o);
  sub->callback([o, &exit_code] { exit_code = run_command([&] { return train(*o); }); });
}

void add_finetune(CLI::App& lm, int& exit_code) {
  auto o = std::make_shared<LmTrainCommand>();
  o->training.learning_rate = 3e-4;
  o->worst = 0.05;
  CLI::App* sub = lm.add_subcommand(
      "finetune", "Continue the training of a language model on the fastest measured programs");
  sub->add_option("model", o->base, "Language model that `lm pretrain` made")->required();
  sub->add_option("corpus", o->corpus, "Corpus that `lm corpus` made")->required();
  add_real(*sub, "--within", o->worst, 0.0, 100.0,
           "Train on the programs that are slower than the fastest program of their task by at most this "
           "share (0.05 = 5 %)");
  add_real(*sub, "--preference", o->training.preference, 0.0, 100.0,
           "Also train on which of two measured programs is faster, by direct preference optimization with "
           "this beta (0 = do not)");
  add_training_options(*sub, *o);
  sub->callback([o, &exit_code] { exit_code = run_command([&] { return train(*o); }); });
}

void add_generate(CLI::App& lm, int& exit_code) {
  auto o = std::make_shared<GenerateCommand>();
  CLI::App* sub =
      lm.add_subcommand("generate", "Write schedules for the tasks of a model, without measuring them");
  o->model.add_to(*sub);
  sub->get_option("model")->required(false);
  o->device.add_to(*sub);
  CLI::Option* records = o->records.records.add_to(*sub)->excludes(sub->get_option("model"));
  CLI::Option* output = sub->add_option(
      "-o,--output", o->records.output,
      "File for the schedules, as JSON lines, which `lm measure` measures; with --records: file for the new "
      "records");
  records->needs(output);
  sub->add_flag("--seen", o->records.seen,
                "With --records: also use the workloads that the language model was trained on")
      ->needs(records);
  add_force(*sub, o->records.force);
  sub->add_option("--lm", o->language_model,
                  "File of the language model, or shipped for the one that comes with Tensorsmith")
      ->required();
  sub->add_option("--task", o->task, "Write schedules only for tasks whose name contains this text");
  sub->add_option(
         "--from", o->from,
         "Database of fast programs (repeatable); the language model gets those of similar tasks as examples")
      ->allow_extra_args(false);
  add_whole(*sub, "--count", o->count, 1, 100'000, "Number of different schedules for each task");
  CLI::Option* temperature = add_real(*sub, "--temperature", o->sampling.temperature, 0.0, 100.0,
                                      "Sampling temperature; 0 always takes the most likely token");
  CLI::Option* top_k = add_whole(*sub, "--top-k", o->sampling.top_k, 0, 128,
                                 "Sample from only this many of the most likely tokens (0 = all)");

  CLI::Option* top_p =
      add_real(*sub, "--top-p", o->sampling.top_p, 1e-6, 1.0,
               "Sample from the smallest set of most likely tokens that has this total probability");
  add_whole(
      *sub, "--beam", o->sampling.beam, 0, 512,
      "Find the most likely schedules with a beam search of this width instead of sampling (0 = sample)")
      ->excludes(temperature)
      ->excludes(top_k)
      ->excludes(top_p);
  add_seed(*sub, o->seed, "Seed of the sampling; the same seed gives the same schedules");
  sub->add_flag("--json", o->json, "Print the result as JSON on standard output");
  sub->callback([o, &exit_code] { exit_code = run_command([&] { return generate(*o); }); });
}

}  // namespace

void add_lm_command(CLI::App& app, int& exit_code) {
  CLI::App* lm = app.add_subcommand("lm", "Train and use a language model that writes schedules");
  lm->require_subcommand(1);
  add_corpus(*lm, exit_code);
  add_pretrain(*lm, exit_code);
  add_finetune(*lm, exit_code);
  add_generate(*lm, exit_code);
  add_language_loop(*lm, exit_code);
  add_language_measure(*lm, exit_code);
  add_language_eval(*lm, exit_code);
  add_language_rank(*lm, exit_code);
}

}  // namespace tensorsmith::tools
