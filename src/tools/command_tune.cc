#include "lab/strategies/strategies.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/tune_run.h"

namespace tensorsmith::tools {

void add_tune_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TuneRunOptions>();
  auto strategy = std::make_shared<std::string>(options->tuning.search.strategy->name);
  CLI::App* command = app.add_subcommand(
      "tune", "Search for the fastest schedules of a model on this machine and compile the model with them");
  add_tune_run_options(*command, *options);
  command->get_option("--seconds")->default_str("60, unless another limit is given");
  add_tune_options(
      *command, {"trials", "until_gain", "cost_model", "frozen", "sources", "warm_start", "language_model"},
      options->tuning);
  command
      ->add_option("--strategy", *strategy,
                   "Strategy that chooses the schedules to measure; those other than evolutionary are for "
                   "comparison: " +
                       lab::tuning_strategy_names())
      ->capture_default_str()
      ->type_name("NAME")
      ->group(kSearchGroup);
  add_tune_options(*command, {"epsilon", "batch"}, options->tuning);
  command->get_option("--no-warm-start")->excludes("--from");
  auto no_measure = std::make_shared<bool>(false);
  command
      ->add_flag(
          "--no-measure", *no_measure,
          "Measure nothing: choose schedules by records, cost model and estimate. This works for devices "
          "that are not here, too")
      ->excludes("--seconds")
      ->excludes("--trials")
      ->excludes("--until-gain")
      ->excludes("--objective")
      ->excludes("--report")
      ->excludes("--serve")
      ->group(kAdvancedGroup);
  command->callback([=, &exit_code] {
    exit_code = run_command([&]() -> Status {
      TS_ASSIGN_OR_RETURN(options->tuning.search.strategy, lab::find_tuning_strategy(*strategy));
      if (*no_measure) return run_unmeasured(*options);
      search::TuneOptions& search = options->tuning.search;
      if (search.trials == 0 && search.seconds == 0 && search.until_gain == 0) {
        for (const char* limit : {"--seconds", "--trials", "--until-gain"})
          if (command->count(limit) > 0)
            return Error{
                ErrorCode::kInvalidArgument, std::string(limit) + " 0",
                "sets no limit, and there is no other; give --seconds, --trials or --until-gain a value"};
        constexpr double kDefaultSeconds = 60;
        search.seconds = kDefaultSeconds;
        options->seconds_by_default = true;
      }
      return run_tuning(*options, "tune");
    });
  });
}

}  // namespace tensorsmith::tools
