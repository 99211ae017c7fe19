#include "tools/train_profile.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "engine/load_model.h"
#include "learn/latency/parameters.h"
#include "learn/profile/two_step.h"
#include "measure/profile/simulate.h"
#include "measure/profile/time_kernel.h"
#include "tools/console.h"
#include "tools/output_files.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

Result<learn::TwoStepOptions> read_options(const ProfileTraining& training) {
  TS_ASSIGN_OR_RETURN(const nlohmann::json given, learn::parse_parameters(training.parameters));
  learn::TwoStepOptions options;
  learn::Parameters parameters(given);
  parameters.flag("counters", options.counters);
  parameters.integer("rounds", options.rounds, 1, 10'000);
  parameters.integer("latency_rounds", options.latency_rounds, 1, 10'000);
  parameters.integer("max_depth", options.max_depth, 1, 15);
  parameters.real("eta", options.eta, 1e-4, 1);
  parameters.integer("folds", options.folds, 2, 100);
  TS_ASSIGN_OR_RETURN([[maybe_unused]] const auto all, parameters.finish());
  options.seed = training.seed;
  options.command = training.command;
  return options;
}

Status leave_out(learn::ProfiledPrograms& data, const std::vector<std::string>& models) {
  std::vector<engine::ModelSource> sources;
  for (const std::string& model : models) sources.push_back({model});
  TS_ASSIGN_OR_RETURN(const auto tasks, engine::load_tasks(sources));
  std::set<std::string> keys;
  for (const auto& shared : tasks) keys.insert(shared.task.key);
  std::erase_if(data.programs,
                [&](const auto& program) { return keys.count(data.tasks[program.task].key) > 0; });
  // The card tells what the model has seen.
  std::vector<learn::StoredWorkload> kept;
  std::vector<size_t> numbers(data.tasks.size());
  for (size_t t = 0; t < data.tasks.size(); ++t) {
    numbers[t] = kept.size();
    if (keys.count(data.tasks[t].key) == 0) kept.push_back(data.tasks[t]);
  }
  for (auto& program : data.programs) program.task = numbers[program.task];
  data.tasks = std::move(kept);
  return {};
}

}  // namespace

Status train_on_profiles(const ProfileTraining& training) {
  if (!training.kind.empty() && training.kind != "two-step")
    return Error{ErrorCode::kInvalidArgument, "--model " + training.kind,
                 "does not learn from profiles; leave it out for two-step"};
  if (training.databases.empty())
    return Error{ErrorCode::kInvalidArgument, "--features profile",
                 "takes the profiles of databases; name them with --from-db"};
  std::vector<InputPath> inputs;
  for (const std::string& database : training.databases) inputs.push_back({"--from-db", database});
  TS_RETURN_IF_ERROR(
      check_outputs({{"-o", training.output, OutputKind::kLatencyModel}}, inputs, training.force));
  TS_ASSIGN_OR_RETURN(const learn::TwoStepOptions options, read_options(training));
  TS_ASSIGN_OR_RETURN(
      learn::ProfiledPrograms data,
      learn::read_profiled_programs(training.databases, measure::kSimulation, measure::kTiming));
  for (const std::string& problem : data.problems) warn(problem);
  TS_RETURN_IF_ERROR(leave_out(data, training.without));
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  TS_ASSIGN_OR_RETURN(const auto model, learn::train_two_step(data, options));
  TS_RETURN_IF_ERROR(model->save(training.output));
  const double seconds = clock.monotonic_seconds() - start;
  const learn::ModelCard& card = model->card();
  const auto bytes = std::filesystem::file_size(training.output);
  if (training.json) {
    print_json(nlohmann::json{{"model", card.kind},
                              {"records", card.records},
                              {"workloads", card.workloads.size()},
                              {"devices", card.devices},
                              {"seconds", seconds},
                              {"bytes", bytes}});
  } else {
    print_out("{} trained on {} profiled programs of {} tasks in {}, {} written to {}\n", card.kind,
              card.records, card.workloads.size(), format_duration(seconds),
              format_bytes(static_cast<double>(bytes)), training.output);
  }
  return {};
}

}  // namespace tensorsmith::tools
