#include "lab/strategies/strategies.h"
#include "tools/commands.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/tune_run.h"

namespace tensorsmith::tools {

void add_tune_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TuneRunOptions>();
  auto no_warm_start = std::make_shared<bool>(false);
  auto strategy = std::make_shared<std::string>(options->strategy->name);
  CLI::App* command = app.add_subcommand(
      "tune", "Search for the fastest schedules of a model on this machine and compile the model with them");
  add_tune_run_options(*command, *options);
  command->get_option("--seconds")->default_str("60, unless another limit is given");
  CLI::Option* trials = add_whole(*command, "--trials", options->trials, 0, kMaxCount,
                                  "Number of schedules to measure (0 = no limit)");
  CLI::Option* until_gain = add_share(
      *command, "--until-gain", options->until_gain,
      "Stop when searching for as long again as so far is expected to make the model faster by less than "
      "this share, 1% or 0.01 (0 = never)");
  add_cost_model_options(*command, options->cost_model);
  command
      ->add_option(
          "--from", options->from,
          "Database, or file of `db export`, with records of other models or machines to start from, "
          "besides those of --db (repeatable; default: the records that come with Tensorsmith)")
      ->allow_extra_args(false)
      ->type_name("FILE")
      ->group(kSearchGroup);
  command
      ->add_flag("--no-warm-start", *no_warm_start,
                 "Start without the schedules of other models, other machines and earlier runs")
      ->excludes("--from")
      ->group(kSearchGroup);
  command
      ->add_option(
          "--lm", options->language_model,
          "Language model that writes schedules for the strategy evolutionary; shipped: the one that comes "
          "with Tensorsmith")
      ->type_name("FILE")
      ->group(kSearchGroup);
  command
      ->add_option(
          "--strategy", *strategy,
          "How the search chooses schedules to measure; the strategies other than evolutionary are for "
          "comparison: " +
              lab::tuning_strategy_names())
      ->capture_default_str()
      ->type_name("NAME")
      ->group(kSearchGroup);
  add_share(*command, "--epsilon", options->epsilon,
            "Share of each batch of measurements that is chosen at random instead of by the cost model")
      ->group(kSearchGroup);
  add_whole(*command, "--batch", options->batch, 1, 1024, "Number of schedules to measure in each round")
      ->group(kSearchGroup);
  auto no_measure = std::make_shared<bool>(false);
  command
      ->add_flag(
          "--no-measure", *no_measure,
          "Measure nothing: choose schedules by records, cost model and estimate. This works for devices "
          "that are not here, too")
      ->excludes("--seconds")
      ->excludes(trials)
      ->excludes(until_gain)
      ->excludes("--report")
      ->excludes("--serve")
      ->group(kAdvancedGroup);
  command->callback([=, &exit_code] {
    exit_code = run_command([&]() -> Status {
      TS_ASSIGN_OR_RETURN(options->strategy, lab::find_tuning_strategy(*strategy));
      options->warm_start = !*no_warm_start;
      options->cost_model_given = command->count("--cost-model") > 0;
      if (*no_measure) return run_unmeasured(*options);
      if (options->trials == 0 && options->seconds == 0 && options->until_gain == 0) {
        for (const char* limit : {"--seconds", "--trials", "--until-gain"})
          if (command->count(limit) > 0)
            return Error{
                ErrorCode::kInvalidArgument, std::string(limit) + " 0",
                "sets no limit, and there is no other; give --seconds, --trials or --until-gain a value"};
        constexpr double kDefaultSeconds = 60;
        options->seconds = kDefaultSeconds;
        options->seconds_by_default = true;
      }
      return run_tuning(*options, "tune");
    });
  });
}

}  // namespace tensorsmith::tools
