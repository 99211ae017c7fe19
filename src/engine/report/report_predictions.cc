#include "engine/report/report_predictions.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/thread_pool.h"
#include "engine/predict/predict_model.h"
#include "ir/text.h"
#include "learn/dataset/import.h"
#include "learn/latency/held_out.h"

namespace tensorsmith::engine {
namespace {

constexpr size_t kMostPredictions = 400;

// Returns indices of successful records, evenly spread from the fastest to the slowest.
std::vector<size_t> some_records(const ReportTask& task, size_t most) {
  std::vector<size_t> ran;
  for (size_t r = 0; r < task.records.size(); ++r)
    if (task.records[r].outcome == record::Outcome::kOk && task.records[r].plausible) ran.push_back(r);
  std::stable_sort(ran.begin(), ran.end(),
                   [&](size_t a, size_t b) { return task.records[a].seconds < task.records[b].seconds; });
  if (ran.size() <= most) return ran;
  std::vector<size_t> some;
  for (size_t i = 0; i < most; ++i) some.push_back(ran[i * ran.size() / most]);
  return some;
}

// Returns nullopt if the model cannot predict the program.
std::optional<TaskPrediction> predict(const ReportTask& task, const std::string& trace,
                                      const target::Device& device, const learn::CostModel& model) {
  auto workload = ir::parse_workload(task.text);
  const auto steps = sched::parse_trace(trace);
  if (!workload.ok() || !steps.ok()) return std::nullopt;
  graph::Task named;
  named.key = task.key;
  named.name = task.name;
  named.workload = std::move(workload).value();
  named.flops = task.flops;
  auto prediction = predict_task(named, *steps, device, &model);
  if (!prediction.ok() || !prediction->roofline_because.empty()) return std::nullopt;
  return std::move(prediction).value();
}

}  // namespace

Status add_predictions(const std::string& file, const learn::CostModelKinds& kinds, int threads,
                       Report& report) {
  TS_ASSIGN_OR_RETURN(const auto model, load_latency_model(kinds, file));
  const std::string predictor =
      std::filesystem::path(file).filename().string() + " (" + model->card().kind + ")";
  std::vector<ReportPrediction> asked;
  const size_t each = std::max<size_t>(kMostPredictions / std::max<size_t>(report.tasks.size(), 1), 1);
  for (size_t t = 0; t < report.tasks.size(); ++t) {
    const auto& device = report.setups[report.tasks[t].setup].device;
    if (!device || !learn::check_knows(model->card(), file, *device).ok()) continue;
    for (const size_t r : some_records(report.tasks[t], each)) asked.push_back({t, r});
  }
  std::vector<learn::Unseen> unseen(asked.size());
  for_each_index(threads, asked.size(), [&](size_t i) {
    const ReportTask& task = report.tasks[asked[i].task];
    const auto said =
        predict(task, task.records[asked[i].record].trace, *report.setups[task.setup].device, *model);
    if (!said) return;
    asked[i].seconds = said->seconds;
    unseen[i] = said->unseen;
    if (said->log_90 <= 0) return;
    asked[i].low_seconds = said->seconds * std::exp(-said->log_90);
    asked[i].high_seconds = said->seconds * std::exp(said->log_90);
  });
  std::set<std::string> notes;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (asked[i].seconds <= 0) continue;
    report.predictions.push_back(asked[i]);
    target::Device named = *report.setups[report.tasks[asked[i].task].setup].device;
    named.name = learn::stored_device_name(named);
    for (std::string& note : learn::describe_unseen(model->card(), unseen[i], named))
      notes.insert(std::move(note));
    if (std::string note = learn::describe_unseen_threads(model->card(), unseen[i], named); !note.empty())
      notes.insert(std::move(note));
  }
  report.predictor = predictor;
  for (const std::string& note : notes) report.notes.push_back(predictor + ": " + note);
  return {};
}

}  // namespace tensorsmith::engine
