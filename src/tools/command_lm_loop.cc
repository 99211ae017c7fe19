// `lm loop`: a language model writes schedules, they are measured, and it is trained on them, round
// after round.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/processors.h"
#include "base/shipped_file.h"
#include "engine/device/usable_threads.h"
#include "lab/kinds/kinds.h"
#include "lab/language_loop.h"
#include "measure/measurer.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/language_commands.h"
#include "tools/log_sink.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

using Json = nlohmann::json;

struct LoopCommand {
  std::vector<std::string> models, held_out;
  std::string output;
  lab::LanguageLoopOptions loop;
  DeviceOptions device;
  double within = 0.05;
  bool quiet = false, json = false, force = false;
};

// Displays the progress of a loop. Rounds and trainings report from two threads.
class LoopDisplay {
 public:
  LoopDisplay(const Clock& clock, bool quiet)
      : clock_(clock), quiet_(quiet), shown_(clock.monotonic_seconds()) {}

  lab::LanguageLoopEvents events() {
    lab::LanguageLoopEvents events;
    events.round = [this](const lab::LanguageLoopRound& round) { add(round); };
    events.measured = [this](int round, const search::TuneProgress& p) {
      say(fmt::format("round {}: {} measured", round, p.trials));
    };
    events.trained = [this](int round, const learn::TrainingProgress& p) {
      const std::lock_guard lock(mutex_);
      training_ = fmt::format("; training on round {}: step {} of {}, loss {:.3f}", round, p.step, p.steps,
                              p.train_loss);
    };
    return events;
  }
  const Json& rounds() const { return rounds_; }

 private:
  void add(const lab::LanguageLoopRound& round) {
    const std::lock_guard lock(mutex_);
    rounds_.push_back({{"round", round.round},
                       {"trials", round.trials},
                       {"seconds", round.seconds},
                       {"gain_over_untuned", round.gain},
                       {"improved_tasks", round.improved},
                       {"tasks", round.tasks}});
    if (!quiet_)
      print_error(
          "round {}: {} programs measured in {}; {} of {} tasks got a faster program; speed-up over untuned "
          "{:.3f}\n",
          round.round, round.trials, format_duration(round.seconds), round.improved, round.tasks, round.gain);
  }
  void say(const std::string& text) {
    const std::lock_guard lock(mutex_);
    const double now = clock_.monotonic_seconds();
    if (quiet_ || now - shown_ < 10) return;
    shown_ = now;
    print_error("{}{}\n", text, training_);
  }

  const Clock& clock_;
  bool quiet_;
  std::mutex mutex_;
  double shown_;
  std::string training_;
  Json rounds_ = Json::array();
};

Status loop(LoopCommand& command) {
  lab::LanguageLoopOptions& options = command.loop;
  options.directory = command.output + ".rounds";
  std::vector<InputPath> inputs = {{"model", options.base}};
  for (const auto& path : options.more_databases) inputs.push_back({"--from", path});
  TS_RETURN_IF_ERROR(check_outputs({{"-o", command.output, OutputKind::kLanguageModel},
                                    {"--db", options.where.database, OutputKind::kDatabase}},
                                   inputs, command.force));
  TS_ASSIGN_OR_RETURN(const target::Device device, command.device.resolve());
  const auto sources_of = [](const std::vector<std::string>& paths) {
    std::vector<engine::ModelSource> sources;
    for (const std::string& path : paths) sources.push_back({.path = path});
    return sources;
  };
  TS_ASSIGN_OR_RETURN(const auto forbidden, engine::load_tasks(sources_of(command.held_out)));
  for (const auto& shared : forbidden) options.held_out.insert(shared.task.key);
  options.training.unmeasured = false;
  options.training.worst = learn::lm::quality_of(command.within);
  options.where.worker = measure::this_program_as_worker();
  const SystemClock clock;
  StderrLogSink log(command.quiet ? LogLevel::kError : LogLevel::kWarning);
  options.threads = engine::usable_threads(processors().usable, log);
  LoopDisplay display(clock, command.quiet);
  const double start = clock.monotonic_seconds();
  TS_ASSIGN_OR_RETURN(const auto model, lab::language_loop(sources_of(command.models), device, options, clock,
                                                           log, display.events(), catch_interrupts()));
  TS_RETURN_IF_ERROR(learn::lm::write_language_model(model, command.output));
  const double seconds = clock.monotonic_seconds() - start;
  if (command.json)
    print_json(Json{{"rounds", display.rounds()}, {"seconds", seconds}});
  else
    print_out("{} rounds in {}; {} written to {}\n", options.rounds, format_duration(seconds),
              format_bytes(std::filesystem::file_size(command.output)), command.output);
  return {};
}

}  // namespace

void add_language_loop(CLI::App& lm, int& exit_code) {
  auto o = std::make_shared<LoopCommand>();
  o->loop.training.learning_rate = 3e-4;
  CLI::App* sub = lm.add_subcommand("loop",
                                    "Improve a language model in rounds: it writes schedules, they are "
                                    "measured, and it is trained on the fastest");
  sub->add_option("model", o->loop.base, "Language model that the training of each round starts from")
      ->required();
  sub->add_option("models", o->models,
                  "ONNX models or networks of the zoo (zoo:NAME); schedules are written for their tasks")
      ->required();
  sub->add_option("--db", o->loop.where.database,
                  "Record database for the measurements; each training uses all of its records")
      ->required();
  sub->add_option("--from", o->loop.more_databases, "Further record database to train on (repeatable)")
      ->allow_extra_args(false);
  sub->add_option("--hold-out", o->held_out, "Leave out the tasks of this model (repeatable)")
      ->allow_extra_args(false);
  add_whole(*sub, "--rounds", o->loop.rounds, 1, 10'000, "Number of rounds");
  add_whole(*sub, "--trials", o->loop.trials, 1, kMaxCount, "Number of measurements in each round");
  add_whole(
      *sub, "--measured", o->loop.measured, 1, 100'000,
      "Largest number of programs to train on for each task and device; half of them are the fastest ones");
  add_real(*sub, "--within", o->within, 0.0, 100.0,
           "Train on the programs that are slower than the fastest program of their task by at most this "
           "share (0.05 = 5 %)");
  add_real(*sub, "--epochs", o->loop.training.epochs, 0.001, 1e4,
           "Number of passes over the sentences in each training");
  add_real(*sub, "--learning-rate", o->loop.training.learning_rate, 1e-7, 1.0,
           "Highest learning rate during the training");
  add_whole(*sub, "--train-threads", o->loop.training_threads, 1, 1024,
            "Number of threads for training, which runs while a round measures");
  o->loop.cost_model.kinds = &lab::cost_model_kinds();
  add_tune_option(*sub, "cost_model", &o->loop.cost_model.model);
  add_tune_option(*sub, "frozen", &o->loop.cost_model.frozen);
  add_seed(*sub, o->loop.seed, "Seed of the written schedules and of the trainings");
  o->device.add_to(*sub);
  sub->add_flag("--fleet", o->loop.where.fleet, engine::tune_option("fleet").help);
  sub->add_option("-o,--output", o->output,
                  "File of the last model. The folder OUTPUT.rounds keeps the model of each round; an "
                  "interrupted loop continues from there")
      ->required();
  add_force(*sub, o->force);
  sub->add_flag("--quiet", o->quiet, "Show no progress");
  sub->add_flag("--json", o->json, "Print the result as JSON on standard output");
  sub->callback([o, &exit_code] { exit_code = run_command([&] { return loop(*o); }); });
}

}  // namespace tensorsmith::tools
