#include "search/strategy.h"
#include "tools/commands.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/tune_run.h"

namespace tensorsmith::tools {

void add_tune_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TuneRunOptions>();
  auto no_warm_start = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "tune", "Search fast schedules for a model on this machine and compile it with them");
  add_tune_run_options(*command, *options);
  add_whole(*command, "--trials", options->trials, 0, kMaxCount, "Measurements to make (0 = no limit)");
  add_share(
      *command, "--until-gain", options->until_gain,
      "Stop where going on for as long again is expected to gain less than this, 1% or 0.01 (0 = never)");
  add_cost_model_options(*command, options->cost_model);
  command
      ->add_option("--from", options->from,
                   "Records to begin with beside those of --db (repeatable): a database or an export of `db "
                   "export`; default: those shipped with the program")
      ->allow_extra_args(false);
  command
      ->add_flag("--no-warm-start", *no_warm_start,
                 "Begin from nothing: no schedules of other tasks, devices or runs")
      ->excludes("--from");
  command->add_option(
      "--lm", options->language_model,
      "A language model that writes schedules for the strategies evolutionary and lm (default: lm takes the "
      "one that is shipped)");
  command->add_option("--strategy", options->strategy, "One of " + search::strategy_names())
      ->capture_default_str();
  add_share(*command, "--epsilon", options->epsilon,
            "Of a batch, the share that is random whatever the scores");
  add_whole(*command, "--batch", options->batch, 1, 1024, "Measurements a round");
  auto no_measure = std::make_shared<bool>(false);
  command
      ->add_flag(
          "--no-measure", *no_measure,
          "Measure nothing: compile with the best that records, the cost model and the estimate know, for "
          "any device")
      ->excludes("--seconds")
      ->excludes("--trials")
      ->excludes("--until-gain")
      ->excludes("--report")
      ->excludes("--serve");
  command->callback([=, &exit_code] {
    exit_code = run_command([&]() -> Status {
      options->warm_start = !*no_warm_start;
      options->cost_model_given = command->count("--cost-model") > 0;
      if (*no_measure) return run_unmeasured(*options);
      if (options->trials == 0 && options->seconds == 0 && options->until_gain == 0) {
        return Error{ErrorCode::kInvalidArgument, "tune",
                     "say how long to search: --seconds S, --trials N or --until-gain 1%"};
      }
      return run_tuning(*options, "tune");
    });
  });
}

}  // namespace tensorsmith::tools
