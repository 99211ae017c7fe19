#include "learn/gbt/xgboost_fit.h"

#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

namespace tensorsmith::learn {

namespace {

Error xgboost_error() {
  std::string reason = XGBGetLastError();
  return {ErrorCode::kResourceExhausted, "", "XGBoost failed: " + reason.substr(0, reason.find('\n'))};
}

#define TS_XGBOOST(call)                     \
  do {                                       \
    if ((call) != 0) return xgboost_error(); \
  } while (false)

struct Matrix {
  DMatrixHandle handle = nullptr;
  ~Matrix() { XGDMatrixFree(handle); }
};
struct Booster {
  BoosterHandle handle = nullptr;
  ~Booster() { XGBoosterFree(handle); }
};

// The rows of all programs without the columns that are the same everywhere (half of them on one kind of
// device): XGBoost's time goes with the columns.
struct TrainingRows {
  std::vector<float> values;  // row-major, columns.size() wide
  std::vector<int> columns;   // of the feature matrix
  std::vector<size_t> begin;  // by program: its first row; programs + 1
};

Result<TrainingRows> gather_rows(std::span<const TrainingProgram> programs) {
  constexpr auto kWidth = static_cast<size_t>(feature::kPerStoreWidth);
  TrainingRows rows;
  rows.begin.push_back(0);
  const float* first = nullptr;
  std::vector<char> varies(kWidth, 0);
  for (size_t p = 0; p < programs.size(); ++p) {
    const feature::FeatureMatrix& matrix = *programs[p].features;
    for (int r = 0; r < matrix.rows; ++r) {
      const std::span<const float> row = matrix.row(r);
      if (first == nullptr) first = row.data();
      for (size_t c = 0; c < kWidth; ++c) {
        if (!std::isfinite(row[c]))
          return Error{ErrorCode::kInvalidArgument, "program " + std::to_string(p),
                       std::string("feature ") + feature::per_store_column_name(static_cast<int>(c)) +
                           " is not finite"};
        varies[c] = static_cast<char>(varies[c] | static_cast<char>(row[c] != first[c]));
      }
    }
    rows.begin.push_back(rows.begin.back() + static_cast<size_t>(matrix.rows));
  }
  for (size_t c = 0; c < kWidth; ++c) {
    if (varies[c] != 0) rows.columns.push_back(static_cast<int>(c));
  }
  if (rows.columns.empty()) rows.columns.push_back(0);  // nothing to split on; XGBoost wants one
  rows.values.reserve(rows.begin.back() * rows.columns.size());
  for (const TrainingProgram& program : programs) {
    for (int r = 0; r < program.features->rows; ++r) {
      const std::span<const float> row = program.features->row(r);
      for (int c : rows.columns) rows.values.push_back(row[static_cast<size_t>(c)]);
    }
  }
  return rows;
}

// y = the task's smallest seconds / seconds; 0 for failed programs.
std::vector<float> labels_of(std::span<const TrainingProgram> programs) {
  std::map<int, double> fastest;
  const auto usable = [](double seconds) { return std::isfinite(seconds) && seconds > 0; };
  for (const TrainingProgram& program : programs) {
    if (!usable(program.seconds)) continue;
    const auto [it, added] = fastest.try_emplace(program.task, program.seconds);
    if (!added) it->second = std::min(it->second, program.seconds);
  }
  std::vector<float> labels;
  labels.reserve(programs.size());
  for (const TrainingProgram& program : programs)
    labels.push_back(usable(program.seconds) ? static_cast<float>(fastest[program.task] / program.seconds)
                                             : 0.0F);
  return labels;
}

template <typename T>
Result<std::vector<T>> numbers(const nlohmann::json& tree, const char* name) {
  const auto it = tree.find(name);
  if (it == tree.end() || !it->is_array())
    return Error{ErrorCode::kMismatch, "", std::string("XGBoost's model has no ") + name};
  return it->get<std::vector<T>>();
}

Result<std::vector<Tree>> read_trees(BoosterHandle booster, const std::vector<int>& columns) {
  bst_ulong size = 0;
  const char* bytes = nullptr;
  TS_XGBOOST(XGBoosterSaveModelToBuffer(booster, R"({"format": "ubj"})", &size, &bytes));
  const auto model = nlohmann::json::from_ubjson(bytes, bytes + size, true, false);
  const nlohmann::json::json_pointer path("/learner/gradient_booster/model/trees");
  if (model.is_discarded() || !model.contains(path))
    return Error{ErrorCode::kMismatch, "", "this version of XGBoost writes models that are not understood"};
  std::vector<Tree> trees;
  for (const auto& item : model[path]) {
    Tree tree;
    TS_ASSIGN_OR_RETURN(tree.left, numbers<int>(item, "left_children"));
    TS_ASSIGN_OR_RETURN(tree.right, numbers<int>(item, "right_children"));
    TS_ASSIGN_OR_RETURN(tree.feature, numbers<int>(item, "split_indices"));
    // XGBoost keeps leaf values where the thresholds of inner nodes are.
    TS_ASSIGN_OR_RETURN(tree.threshold, numbers<float>(item, "split_conditions"));
    tree.value = tree.threshold;
    for (size_t i = 0; i < tree.size(); ++i) {
      if (tree.left[i] >= 0) tree.feature[i] = columns[static_cast<size_t>(tree.feature[i])];
    }
    trees.push_back(std::move(tree));
  }
  return trees;
}

}  // namespace

Result<GbtFit> fit_gbt(std::span<const TrainingProgram> programs, const GbtOptions& options) {
  if (programs.empty()) return Error{ErrorCode::kInvalidArgument, "", "no programs to train on"};
  TS_ASSIGN_OR_RETURN(const TrainingRows rows, gather_rows(programs));
  const size_t row_count = rows.begin.back();
  if (row_count == 0) return Error{ErrorCode::kInvalidArgument, "", "no feature rows to train on"};
  const std::vector<float> labels = labels_of(programs);

  Matrix matrix;
  TS_XGBOOST(XGDMatrixCreateFromMat_omp(rows.values.data(), row_count, rows.columns.size(),
                                        std::numeric_limits<float>::quiet_NaN(), &matrix.handle,
                                        options.threads));
  Booster booster;
  TS_XGBOOST(XGBoosterCreate(&matrix.handle, 1, &booster.handle));
  const std::pair<const char*, std::string> parameters[] = {
      {"max_depth", std::to_string(options.max_depth)},
      {"gamma", std::to_string(options.gamma)},
      {"min_child_weight", std::to_string(options.min_child_weight)},
      {"eta", std::to_string(options.eta)},
      {"tree_method", options.max_bins > 0 ? "hist" : "exact"},
      {"max_bin", std::to_string(options.max_bins > 0 ? options.max_bins : 256)},
      {"nthread", std::to_string(options.threads)},
      {"seed", std::to_string(options.seed & 0x7fffffff)},
      {"base_score", "0"},
      {"verbosity", "0"},
      {"disable_default_eval_metric", "1"},
  };
  for (const auto& [name, value] : parameters)
    TS_XGBOOST(XGBoosterSetParam(booster.handle, name, value.c_str()));

  // Pack-sum: the loss of a program is weight * (sum of its rows' predictions - y)^2 / 2, so all its rows
  // have the gradient weight * (sum - y). TVM takes weight as the hessian; but the sum moves by `rows` times
  // the step of a row, and from rows * eta = 2 on the boosting diverges. So the hessian is weight * max(1,
  // rows * eta): TVM's where that is safe, and never an overshoot.
  std::vector<float> gradient(row_count), hessian(row_count);
  const float* predicted = nullptr;
  bst_ulong predicted_count = 0;
  for (int round = 0; round < options.rounds; ++round) {
    // The training rows' predictions are cached by the booster and updated by each new tree.
    TS_XGBOOST(XGBoosterPredict(booster.handle, matrix.handle, 0, 0, 1, &predicted_count, &predicted));
    TS_CHECK(predicted_count == row_count, "XGBoost predicts another number of rows");
    for (size_t p = 0; p < programs.size(); ++p) {
      float sum = 0;
      for (size_t r = rows.begin[p]; r < rows.begin[p + 1]; ++r) sum += predicted[r];
      const float stability = std::max(
          1.0F, static_cast<float>(rows.begin[p + 1] - rows.begin[p]) * static_cast<float>(options.eta));
      const float weight =
          options.weight_by_label ? std::max(labels[p], static_cast<float>(options.min_weight)) : 1.0F;
      for (size_t r = rows.begin[p]; r < rows.begin[p + 1]; ++r) {
        gradient[r] = weight * (sum - labels[p]);
        hessian[r] = weight * stability;
      }
    }
    TS_XGBOOST(
        XGBoosterBoostOneIter(booster.handle, matrix.handle, gradient.data(), hessian.data(), row_count));
  }
  TS_XGBOOST(XGBoosterPredict(booster.handle, matrix.handle, 0, 0, 0, &predicted_count, &predicted));

  GbtFit fit;
  fit.row_predictions.assign(predicted, predicted + predicted_count);
  TS_ASSIGN_OR_RETURN(const std::vector<Tree> trees, read_trees(booster.handle, rows.columns));
  TS_ASSIGN_OR_RETURN(fit.forest, Forest::create(trees, feature::kPerStoreWidth));
  return fit;
}

}  // namespace tensorsmith::learn
