#include "tools/eval_rounds.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/clock.h"
#include "record/jsonl.h"
#include "tools/console.h"
#include "tools/curve_plot.h"
#include "tools/interrupt.h"
#include "tools/report.h"
#include "tools/run_log.h"

namespace tensorsmith::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The mean scores of one model, pre-trained or from scratch.
struct MeanCurve {
  std::string model;
  bool pretrained = false;
  lab::CurveMean top_half, rmse;

  const char* training() const { return pretrained ? "pre-trained" : "from scratch"; }
  std::string name() const { return model + ", " + training(); }
};

std::vector<MeanCurve> mean_curves(const std::vector<lab::CurveModel>& models,
                                   const std::vector<lab::LearningCurve>& curves) {
  std::vector<MeanCurve> out;
  for (size_t m = 0; m < models.size(); ++m)
    for (const bool pretrained : {true, false})
      out.push_back({models[m].name, pretrained,
                     lab::mean_of_curves(curves, m, pretrained, &lab::LearningCurve::top_half),
                     lab::mean_of_curves(curves, m, pretrained, &lab::LearningCurve::rmse)});
  return out;
}

Result<std::vector<lab::CurveModel>> make_models(const RoundsEvaluation& evaluation,
                                                 const engine::ModelData& data, const learn::Split& split) {
  TS_ASSIGN_OR_RETURN(const learn::TrainingData training, data.training_data(split, {}, false));
  std::vector<lab::CurveModel> out;
  for (const std::string& name : evaluation.models) {
    TS_ASSIGN_OR_RETURN(lab::CurveModel model,
                        lab::make_curve_model(name, training, split.content_hash(), evaluation.curves.seeds,
                                              evaluation.curves.threads, catch_interrupts()));
    const learn::ModelCard& card = model.pretrained.front()->card();
    if (card.store_hash == data.store().content_hash() && card.split != split.content_hash())
      warn(format_printable(
          "the model {} was trained with another split of this store, so it may have been trained on these "
          "records",
          name));
    out.push_back(std::move(model));
  }
  return out;
}

// Returns the number of tasks that any of the pre-trained models was trained on.
size_t seen_tasks(const std::vector<lab::LearningCurve>& curves) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const lab::LearningCurve& curve : curves)
    if (curve.seen) seen.insert({curve.device, curve.task});
  return seen.size();
}

void print_scores(const std::vector<MeanCurve>& curves, int64_t batch, lab::CurveMean MeanCurve::* score,
                  double unit) {
  std::vector<std::string> header = {"round", "learned programs"};
  for (const MeanCurve& curve : curves) header.push_back(curve.name());
  Table table(header);
  for (size_t round = 0; round < (curves.front().*score).mean.size(); ++round) {
    std::vector<std::string> row = {std::to_string(round + 1), std::to_string(round * batch)};
    for (const MeanCurve& curve : curves) {
      const lab::CurveMean& values = curve.*score;
      row.push_back(
          std::isfinite(values.mean[round])
              ? fmt::format("{:.3g} +- {:.2g}", unit * values.mean[round], unit * values.over_tasks[round])
              : "-");
    }
    table.add(std::move(row));
  }
  print_lines(table.text());
}

void print_rounds(const std::vector<MeanCurve>& curves, const lab::LearningCurves& result,
                  const lab::LearningCurveOptions& options) {
  print_out("Share of the {} fastest of a round's {} programs among the {} predicted to be fastest, in %:\n",
            options.batch / 2, options.batch, options.batch / 2);
  print_scores(curves, options.batch, &MeanCurve::top_half, 100);
  print_out("\nRMSE of the normalized throughput (fastest seconds of the earlier rounds / seconds):\n");
  print_scores(curves, options.batch, &MeanCurve::rmse, 1);
  print_out(
      "Each entry is the mean over {} tasks and {} seeds, and the standard deviation over the tasks. A round "
      "is "
      "predicted before\nthe model learns from it. \"-\": the model has learned nothing yet, or only ranks "
      "programs, or there is no earlier round.\n",
      result.tasks, options.seeds);
}

OrderedJson rounds_json(const std::vector<MeanCurve>& curves, const lab::LearningCurves& result,
                        const RoundsEvaluation& evaluation, size_t seen) {
  const lab::LearningCurveOptions& options = evaluation.curves;
  OrderedJson out = {
      {"rounds", options.rounds},     {"batch", options.batch},         {"seeds", options.seeds},
      {"shuffled", options.shuffled}, {"tasks", result.tasks},          {"left_out", result.left_out},
      {"seen_tasks", seen},           {"curves", OrderedJson::array()}, {"runs", OrderedJson::array()}};
  const auto values = [](const lab::CurveMean& mean) {
    return OrderedJson{{"mean", numbers_to_json(mean.mean)},
                       {"over_tasks", numbers_to_json(mean.over_tasks)},
                       {"over_seeds", numbers_to_json(mean.over_seeds)}};
  };
  for (const MeanCurve& curve : curves)
    out["curves"].push_back({{"model", curve.model},
                             {"training", curve.training()},
                             {"top_half", values(curve.top_half)},
                             {"rmse", values(curve.rmse)}});
  for (const lab::LearningCurve& curve : result.curves)
    out["runs"].push_back({{"device", curve.device},
                           {"task", curve.task},
                           {"name", curve.name},
                           {"model", evaluation.models[curve.model]},
                           {"training", curve.pretrained ? "pre-trained" : "from scratch"},
                           {"seed", curve.seed},
                           {"top_half", numbers_to_json(curve.top_half)},
                           {"rmse", numbers_to_json(curve.rmse)}});
  return out;
}

CurvePanel panel_of(const std::vector<MeanCurve>& curves, lab::CurveMean MeanCurve::* score,
                    const CurveAxes& axes) {
  CurvePanel out{{}, axes};
  for (const MeanCurve& one : curves) {
    const lab::CurveMean& values = one.*score;
    Curve& curve = out.curves.emplace_back();
    curve.name = one.name();
    curve.y = values.mean;
    for (size_t round = 0; round < values.mean.size(); ++round) {
      curve.x.push_back(round + 1);
      curve.low.push_back(values.mean[round] - values.over_tasks[round]);
      curve.high.push_back(values.mean[round] + values.over_tasks[round]);
    }
  }
  return out;
}

Status draw_rounds(const std::string& path, const std::vector<MeanCurve>& curves,
                   const lab::LearningCurves& result, const lab::LearningCurveOptions& options) {
  if (path.empty()) return {};
  const std::string title = fmt::format("Mean and deviation over {} tasks", result.tasks);
  const std::string rounds = fmt::format("round of {} programs", options.batch);
  TS_ASSIGN_OR_RETURN(const auto picture, record::AtomicFileWriter::open(path));
  TS_RETURN_IF_ERROR(picture->write(curve_plots(
      {panel_of(curves, &MeanCurve::top_half,
                {title, rounds, fmt::format("recall of the top {} of {}", options.batch / 2, options.batch)}),
       panel_of(curves, &MeanCurve::rmse, {title, rounds, "RMSE of the normalized throughput"})},
      "eval")));
  return picture->commit();
}

}  // namespace

Status evaluate_rounds(const RoundsEvaluation& evaluation, const engine::ModelData& data,
                       const learn::Split& split, const std::vector<int64_t>& records) {
  TS_RETURN_IF_ERROR(lab::check_rounds(data.store(), records, evaluation.curves));
  TS_ASSIGN_OR_RETURN(const auto models, make_models(evaluation, data, split));
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  double shown = start;
  const lab::LearningCurveProgress progress = [&](int64_t done, int64_t tasks) {
    const double now = clock.monotonic_seconds();
    if (now - shown < 5) return;
    shown = now;
    print_error("{} of {} tasks in {}\n", done, tasks, format_duration(now - start));
  };
  TS_ASSIGN_OR_RETURN(const lab::LearningCurves result,
                      lab::learning_curves(data.store(), data.devices(), records, models, evaluation.curves,
                                           progress, catch_interrupts()));
  if (result.left_out > 0)
    warn(fmt::format("{} of {} tasks are left out because they have fewer than {} measured programs",
                     result.left_out, result.left_out + result.tasks,
                     int64_t{evaluation.curves.rounds} * evaluation.curves.batch));
  const size_t seen = seen_tasks(result.curves);
  if (seen > 0)
    warn(fmt::format("the pre-trained models were trained on {} of these {} tasks", seen, result.tasks));
  const std::vector<MeanCurve> curves = mean_curves(models, result.curves);
  TS_RETURN_IF_ERROR(draw_rounds(evaluation.plot, curves, result, evaluation.curves));
  if (evaluation.json) {
    print_json(rounds_json(curves, result, evaluation, seen));
  } else {
    print_rounds(curves, result, evaluation.curves);
  }
  return {};
}

}  // namespace tensorsmith::tools
