#include "tools/commands.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/tune_run.h"

namespace tensorsmith::tools {

void add_transfer_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TuneRunOptions>();
  auto candidates = std::make_shared<int>(8);
  auto choose = std::make_shared<std::string>("gain");
  CLI::App* command = app.add_subcommand("transfer",
                                         "Compile a model with the fastest schedules of other models: adapt "
                                         "them to its shapes and measure them, "
                                         "without a search");
  add_tune_run_options(*command, *options);
  command
      ->add_option("--from", options->tuning.sources,
                   "Source of schedules, besides --db (repeatable): a database, a file of `db export`, or a "
                   "model (NAME.onnx, "
                   "zoo:NAME). If models are given, only records of their tasks are used")
      ->allow_extra_args(false)
      ->type_name("SOURCE")
      ->required();
  command->add_flag("--pool", options->tuning.pool_sources,
                    "Use schedules of all these models, not only of the model that ranks first");
  command
      ->add_option(
          "--choose", *choose,
          "Ranking of the models: by the speed-up that their records predict, or by the heuristic of the "
          "transfer-tuning paper")
      ->check(CLI::IsMember({"gain", "heuristic"}))
      ->capture_default_str();
  add_whole(*command, "--candidates", *candidates, 1, 64,
            "Number of schedules to measure for each task, at most");
  command->callback([=, &exit_code] {
    exit_code = run_command([&] {
      engine::TuneModelOptions& tuning = options->tuning;
      tuning.search.strategy = &search::kTransferStrategy;
      tuning.cost_model.model = "none";
      tuning.seeds.same_task = tuning.seeds.other_tasks = static_cast<size_t>(*candidates);
      tuning.source_ranking =
          *choose == "gain" ? engine::SourceRanking::kGain : engine::SourceRanking::kHeuristic;
      // Without a limit: all candidates are measured, which does not take long.
      if (tuning.search.seconds == 0) tuning.search.trials = engine::kMostTrials;
      return run_tuning(*options, "transfer");
    });
  });
}

}  // namespace tensorsmith::tools
