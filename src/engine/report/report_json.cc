#include "engine/report/report_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace tensorsmith::engine {
namespace {

nlohmann::json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

const char* end_text(search::SearchEnd end) {
  switch (end) {
    case search::SearchEnd::kLimit:
      return "limit";
    case search::SearchEnd::kExhausted:
      return "exhausted";
    case search::SearchEnd::kGain:
      return "gain";
  }
  return "";
}

nlohmann::json to_json(const search::TaskAllocation& allocation) {
  nlohmann::json rounds = nlohmann::json::object();
  for (const search::RoundReason reason : search::kRoundReasons)
    rounds[std::string(to_string(reason))] = allocation.rounds[static_cast<size_t>(reason)];
  return {{"trials", allocation.trials},
          {"seconds", allocation.seconds},
          {"rounds", rounds},
          {"next_gain", number_or_null(allocation.next_gain)},
          {"end", to_string(allocation.end)}};
}

}  // namespace

nlohmann::json to_json(const ProgramSource& source) {
  return {{"task", source.task},        {"device", source.device},       {"file", source.file},
          {"seconds", source.seconds},  {"same_task", source.same_task}, {"speedup", source.speedup},
          {"distance", source.distance}};
}

nlohmann::json to_json(const Speedup& speedup) {
  const std::string warning = warning_of(speedup);
  return {{"untuned_seconds", number_or_null(speedup.untuned_seconds)},
          {"tuned_seconds", number_or_null(speedup.tuned_seconds)},
          {"speedup", number_or_null(speedup.ratio())},
          {"spread", number_or_null(speedup.spread)},
          {"busy", speedup.busy()},
          {"warning", warning.empty() ? nlohmann::json(nullptr) : nlohmann::json(warning)}};
}

nlohmann::json to_json(const Estimate& estimate) {
  if (!estimate.known()) return nullptr;
  return {{"untuned_seconds", estimate.untuned_seconds},
          {"tuned_seconds", estimate.tuned_seconds},
          {"ratio", estimate.ratio()}};
}

nlohmann::json to_json(const TunedModel& tuned, const std::string& directory, const std::string& database) {
  const search::TuneProgress& p = tuned.report.final;
  nlohmann::json tasks = nlohmann::json::array();
  for (size_t t = 0; t < p.tasks.size(); ++t) {
    const auto& task = p.tasks[t];
    tasks.push_back({{"name", task.name},
                     {"weight", task.weight},
                     {"trials", task.trials},
                     {"failures", task.failures},
                     {"kept", tuned.kept[t] != 0},
                     {"default_seconds", number_or_null(task.default_seconds)},
                     {"best_seconds", number_or_null(task.best_seconds)},
                     {"allocation", to_json(tuned.report.allocation[t])}});
    if (tuned.report.objective != "latency") {
      tasks.back()["default_cost"] = number_or_null(task.default_cost);
      tasks.back()["best_cost"] = number_or_null(task.best_cost);
    }
    if (tuned.sources[t]) tasks.back()["source"] = to_json(*tuned.sources[t]);
    if (tuned.alone[t] > 0) tasks.back()["alone_seconds"] = task.weight * tuned.alone[t];
    if (!tuned.in_model) continue;
    tasks.back()["in_model_untuned_seconds"] = number_or_null(tuned.in_model->task_untuned[t]);
    tasks.back()["in_model_tuned_seconds"] = number_or_null(tuned.in_model->task_tuned[t]);
  }
  nlohmann::json out = {{"directory", directory},
                        {"database", database},
                        {"elapsed_seconds", p.elapsed_seconds},
                        {"trials", p.trials},
                        {"resumed", p.resumed},
                        {"estimate", to_json(tuned.estimate)},
                        {"ended_by", end_text(tuned.report.end)},
                        {"objective", tuned.report.objective},
                        {"tasks", tasks}};
  for (const SourceScore& score : tuned.source_scores)
    out["source_models"].push_back({{"name", score.name},
                                    {"tasks", score.tasks},
                                    {"covered", score.covered},
                                    {"heuristic", score.heuristic},
                                    {"gain", score.gain}});
  if (tuned.in_model) out["end_to_end"] = to_json(tuned.in_model->whole);
  return out;
}

nlohmann::json to_json(const LoadedModel& model, const std::string& directory,
                       const std::vector<UnmeasuredChoice>& choices) {
  nlohmann::json tasks = nlohmann::json::array();
  for (size_t t = 0; t < choices.size(); ++t) {
    tasks.push_back({{"name", model.partition.tasks[t].name},
                     {"calls", model.partition.tasks[t].calls},
                     {"chosen", to_string(choices[t].reason)},
                     {"expected_gain", choices[t].gain}});
    if (choices[t].source) tasks.back()["source"] = to_json(*choices[t].source);
  }
  return {{"directory", directory}, {"tasks", tasks}};
}

nlohmann::json to_json(const Prediction& prediction) {
  const ModelPrediction& p = prediction.latency;
  const graph::Partition& partition = prediction.model.partition;
  nlohmann::json tasks = nlohmann::json::array();
  for (size_t t = 0; t < p.tasks.size(); ++t) {
    const auto& task = partition.tasks[t];
    nlohmann::json entry = {{"name", task.name},
                            {"key", task.key},
                            {"calls", task.calls},
                            {"schedule", prediction.tuned[t] ? "tuned" : "untuned"},
                            {"seconds", p.tasks[t].seconds},
                            {"least_seconds", p.tasks[t].least_seconds},
                            {"log_sigma", p.tasks[t].log_sigma}};
    if (prediction.tuned[t]) entry["measured_seconds"] = prediction.schedules[t].measured_seconds;
    if (!p.tasks[t].roofline_because.empty()) entry["roofline_because"] = p.tasks[t].roofline_because;
    tasks.push_back(std::move(entry));
  }
  nlohmann::json calls = nlohmann::json::array();
  for (size_t c = 0; c < p.calls.size(); ++c)
    calls.push_back(
        {{"task", partition.calls[c].task ? nlohmann::json(*partition.calls[c].task) : nlohmann::json()},
         {"start_seconds", p.calls[c].start_seconds},
         {"seconds", p.calls[c].seconds},
         {"refill_seconds", p.calls[c].refill_seconds}});
  nlohmann::json assumed = nlohmann::json::object();
  for (const auto& attribute : prediction.assumed) assumed[attribute.name] = attribute.value;
  const nlohmann::json unknown;
  return {{"model", prediction.model.graph.name},
          {"device", parse_json<nlohmann::json>(target::to_json(prediction.device))},
          {"predictor", prediction.predictor},
          {"seconds", p.seconds},
          {"log_sigma", p.log_sigma},
          {"least_seconds", p.least_seconds},
          {"low_seconds", p.log_90 > 0 ? nlohmann::json(p.low_seconds()) : unknown},
          {"high_seconds", p.log_90 > 0 ? nlohmann::json(p.high_seconds()) : unknown},
          {"unseen",
           {{"device", p.unseen.device},
            {"threads", p.unseen.threads},
            {"kind", p.unseen.kind},
            {"size", p.unseen.size}}},
          {"assumed", assumed},
          {"warnings", prediction.warnings},
          {"notes", prediction.notes},
          {"refill_seconds", p.refill_seconds},
          {"cache_retention", prediction.cache_retention},
          {"launch_seconds", p.launch_seconds},
          {"tasks", tasks},
          {"calls", calls}};
}

}  // namespace tensorsmith::engine
