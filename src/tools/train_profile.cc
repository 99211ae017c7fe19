#include "tools/train_profile.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "engine/model/load_model.h"
#include "learn/latency/parameters.h"
#include "learn/profile/profile_model.h"
#include "learn/profile/two_step.h"
#include "tools/console.h"
#include "tools/output_files.h"
#include "tools/profiled_data.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

Status leave_out(learn::ProfiledPrograms& data, const std::vector<std::string>& models) {
  std::vector<engine::ModelSource> sources;
  for (const std::string& model : models) sources.push_back({model});
  TS_ASSIGN_OR_RETURN(const auto tasks, engine::load_tasks(sources));
  std::set<std::string> keys;
  for (const auto& shared : tasks) keys.insert(shared.task.key);
  data.keep([&](const learn::StoredWorkload& task) { return keys.count(task.key) == 0; });
  return {};
}

Result<std::unique_ptr<learn::CostModel>> train_two_step(const learn::ProfiledPrograms& data,
                                                         const ProfileTraining& training) {
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
  return learn::train_two_step(data, options);
}

Result<std::unique_ptr<learn::CostModel>> train_direct(const learn::ProfiledPrograms& data,
                                                       const ProfileTraining& training) {
  TS_ASSIGN_OR_RETURN(const nlohmann::json given, learn::parse_parameters(training.parameters));
  std::string learner = "xgboost";
  learn::Parameters parameters(given);
  parameters.choice("learner", learner, {"xgboost", "mlp"});
  TS_ASSIGN_OR_RETURN([[maybe_unused]] const auto all, parameters.finish());
  return learn::train_profile_model(
      data, {.learner = learner == "mlp" ? learn::Learner::kMlp : learn::Learner::kXgboost,
             .seed = training.seed,
             .command = training.command});
}

}  // namespace

Status train_on_profiles(const ProfileTraining& training) {
  const bool two_step = training.kind.empty() || training.kind == "two-step";
  if (!two_step && training.kind != "profile")
    return Error{ErrorCode::kInvalidArgument, "--model " + training.kind,
                 "cannot be trained on profiles; use --model two-step or --model profile"};
  if (training.databases.empty())
    return Error{ErrorCode::kInvalidArgument, "--features profile",
                 "needs record databases with profiles; name them with --from-db"};
  std::vector<InputPath> inputs;
  for (const std::string& database : training.databases) inputs.push_back({"--from-db", database});
  TS_RETURN_IF_ERROR(
      check_outputs({{"-o", training.output, OutputKind::kLatencyModel}}, inputs, training.force));
  TS_ASSIGN_OR_RETURN(learn::ProfiledPrograms data,
                      read_profiles(training.databases, training.profiler, training.tasks));
  TS_RETURN_IF_ERROR(leave_out(data, training.without));
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  TS_ASSIGN_OR_RETURN(const auto model,
                      two_step ? train_two_step(data, training) : train_direct(data, training));
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
    print_out("{} trained on {} profiled programs of {} tasks in {}; {} written to {}\n", card.kind,
              card.records, card.workloads.size(), format_duration(seconds), format_bytes(bytes),
              training.output);
  }
  return {};
}

}  // namespace tensorsmith::tools
