#include "learn/gbt/pack_sum.h"

#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "learn/gbt/relative_loss.h"

namespace tensorsmith::learn {

namespace {

constexpr int kCheckpointRounds = 50;
// Least number of rows for each thread. XGBoost's threads spin while they wait for each other,
// several times per level of a tree. If one of them has to share its core, small data takes fifty
// times as long on two threads as on one (2,935 programs: 76 to 106 s instead of 2 s). Undisturbed,
// a second thread saves only 15 % of the training time on both 2,935 and 16,934 programs.
constexpr size_t kRowsPerThread = 10'000;

int useful_threads(int threads, size_t rows) {
  return std::clamp(static_cast<int>(rows / kRowsPerThread), 1, std::max(threads, 1));
}

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

// Returns the columns that are not constant (about half of them, if all devices are of one kind),
// because the time of XGBoost is proportional to the number of columns.
Result<std::vector<int>> varying_columns(const PackSumData& data) {
  const size_t width = data.width;
  std::vector<char> varies(width, 0);
  for (size_t p = 0; p < data.programs(); ++p) {
    for (size_t r = data.begin[p]; r < data.begin[p + 1]; ++r) {
      const float* row = data.values.data() + r * width;
      for (size_t c = 0; c < width; ++c) {
        if (!std::isfinite(row[c]))
          return Error{ErrorCode::kInvalidArgument, "program " + std::to_string(p),
                       "feature " + data.column_name(c) + " is not finite"};
        varies[c] |= row[c] != data.values[c] ? 1 : 0;
      }
    }
  }
  std::vector<int> columns;
  for (size_t c = 0; c < width; ++c) {
    if (varies[c] != 0) columns.push_back(c);
  }
  if (columns.empty()) columns.push_back(0);  // nothing to split on, but XGBoost needs a column
  return columns;
}

// Removes all other columns. Works in place, since the data may be most of the memory in use.
void keep_columns(PackSumData& data, const std::vector<int>& columns) {
  const size_t width = data.width;
  const size_t rows = data.begin.back();
  float* out = data.values.data();
  for (size_t r = 0; r < rows; ++r) {
    const float* row = data.values.data() + r * width;
    for (const int c : columns) *out++ = row[c];
  }
  data.values.resize(rows * columns.size());
  data.width = columns.size();
}

// Copies the values into XGBoost's matrix and frees them.
Status make_matrix(PackSumData& data, int threads, Matrix& matrix) {
  TS_XGBOOST(XGDMatrixCreateFromMat_omp(data.values.data(), data.begin.back(), data.width,
                                        std::numeric_limits<float>::quiet_NaN(), &matrix.handle, threads));
  std::vector<float>().swap(data.values);
  return {};
}

template <typename T>
Result<std::vector<T>> numbers(const nlohmann::json& tree, const char* name) {
  const auto it = tree.find(name);
  if (it == tree.end() || !it->is_array())
    return Error{ErrorCode::kMismatch, "", std::string("XGBoost's model has no ") + name};
  return it->get<std::vector<T>>();
}

Result<std::vector<Tree>> read_trees(BoosterHandle booster, const std::vector<int>& columns, size_t count) {
  bst_ulong size = 0;
  const char* bytes = nullptr;
  TS_XGBOOST(XGBoosterSaveModelToBuffer(booster, R"({"format": "ubj"})", &size, &bytes));
  const auto model = nlohmann::json::from_ubjson(bytes, bytes + size, true, false);
  const nlohmann::json::json_pointer path("/learner/gradient_booster/model/trees");
  if (model.is_discarded() || !model.contains(path))
    return Error{ErrorCode::kMismatch, "", "this version of XGBoost writes models that are not understood"};
  std::vector<Tree> trees;
  for (const auto& item : model[path]) {
    if (trees.size() == count) break;
    Tree tree;
    TS_ASSIGN_OR_RETURN(tree.left, numbers<int>(item, "left_children"));
    TS_ASSIGN_OR_RETURN(tree.right, numbers<int>(item, "right_children"));
    TS_ASSIGN_OR_RETURN(tree.feature, numbers<int>(item, "split_indices"));
    // XGBoost stores leaf values in the array of the thresholds of inner nodes.
    TS_ASSIGN_OR_RETURN(tree.threshold, numbers<float>(item, "split_conditions"));
    tree.value = tree.threshold;
    for (size_t i = 0; i < tree.size(); ++i) {
      if (tree.left[i] >= 0) tree.feature[i] = columns[tree.feature[i]];
    }
    trees.push_back(std::move(tree));
  }
  return trees;
}

Status configure(BoosterHandle booster, const PackSumOptions& options) {
  const std::pair<const char*, std::string> parameters[] = {
      {"max_depth", std::to_string(options.max_depth)},
      {"gamma", std::to_string(options.gamma)},
      {"min_child_weight", std::to_string(options.min_child_weight)},
      {"eta", std::to_string(options.eta)},
      {"lambda", std::to_string(options.lambda)},
      {"subsample", std::to_string(options.row_share)},
      {"colsample_bynode", std::to_string(options.node_column_share)},
      {"tree_method", options.max_bins > 0 ? "hist" : "exact"},
      {"max_bin", std::to_string(options.max_bins > 0 ? options.max_bins : 256)},
      {"nthread", std::to_string(options.threads)},
      {"seed", std::to_string(options.seed & 0x7fffffff)},
      {"base_score", "0"},
      {"verbosity", "0"},
      {"disable_default_eval_metric", "1"},
  };
  for (const auto& [name, value] : parameters) TS_XGBOOST(XGBoosterSetParam(booster, name, value.c_str()));
  return {};
}

// Calls visit(program, sum of the predictions of its rows).
template <class Visit>
Status visit_sums(BoosterHandle booster, const Matrix& matrix, const PackSumData& data, bool training,
                  const Visit& visit) {
  const float* predicted = nullptr;
  bst_ulong count = 0;
  // The booster caches the predictions of the rows and updates them with each new tree.
  TS_XGBOOST(XGBoosterPredict(booster, matrix.handle, 0, 0, training ? 1 : 0, &count, &predicted));
  TS_CHECK(count == data.begin.back(), "XGBoost predicted another number of rows than it was given");
  for (size_t p = 0; p < data.programs(); ++p) {
    float sum = 0;
    for (size_t r = data.begin[p]; r < data.begin[p + 1]; ++r) sum += predicted[r];
    visit(p, sum);
  }
  return {};
}

struct Loss {
  PackSumLoss kind = PackSumLoss::kSquared;
  double sum = 0, weights = 0;
  void add(float error, float weight) {
    const double e = error;
    sum += weight * (kind == PackSumLoss::kRelative ? std::abs(std::expm1(e)) : e * e);
    weights += weight;
  }
  double mean() const { return weights > 0 ? sum / weights : NAN; }
};

Status keep(BoosterHandle booster, const PackSumOptions& options, PackSumState& state) {
  if (!options.checkpoint) return {};
  bst_ulong size = 0;
  const char* bytes = nullptr;
  TS_XGBOOST(XGBoosterSaveModelToBuffer(booster, R"({"format": "ubj"})", &size, &bytes));
  state.booster.assign(bytes, bytes + size);
  return options.checkpoint(state);
}

}  // namespace

void PackSumData::add(std::span<const float> rows, float label, float weight) {
  values.insert(values.end(), rows.begin(), rows.end());
  begin.push_back(begin.back() + rows.size() / width);
  labels.push_back(label);
  weights.push_back(weight);
}

Result<PackSumFit> fit_pack_sum(PackSumData train, PackSumData validation, const PackSumOptions& given) {
  if (train.programs() == 0) return Error{ErrorCode::kInvalidArgument, "", "no programs to train on"};
  const size_t row_count = train.begin.back();
  if (row_count == 0) return Error{ErrorCode::kInvalidArgument, "", "no feature rows to train on"};
  PackSumOptions options = given;
  options.threads = useful_threads(given.threads, row_count);
  const size_t width = train.width;
  TS_ASSIGN_OR_RETURN(const std::vector<int> columns, varying_columns(train));
  keep_columns(train, columns);
  Matrix matrix, validation_matrix;
  TS_RETURN_IF_ERROR(make_matrix(train, options.threads, matrix));
  const bool validates = validation.begin.back() > 0;
  if (validates) {
    keep_columns(validation, columns);
    TS_RETURN_IF_ERROR(make_matrix(validation, options.threads, validation_matrix));
  }
  Booster booster;
  const DMatrixHandle cached[] = {matrix.handle, validation_matrix.handle};
  TS_XGBOOST(XGBoosterCreate(cached, validates ? 2 : 1, &booster.handle));
  PackSumState state = options.resume;
  if (!state.booster.empty() &&
      XGBoosterLoadModelFromBuffer(booster.handle, state.booster.data(), state.booster.size()) != 0)
    return Error{ErrorCode::kCorrupt, "", "the checkpoint does not contain an XGBoost model"};
  TS_RETURN_IF_ERROR(configure(booster.handle, options));

  // Pack-sum: the squared loss of a program is weight * (sum of its rows' predictions - y)^2 / 2,
  // so all its rows have the gradient weight * (sum - y). TVM uses `weight` as the hessian, but the
  // sum moves `rows` times as far as a single row, so boosting diverges if rows * eta >= 2. The
  // hessian used here is weight * max(1, rows * eta): equal to TVM's where that is safe, and never
  // overshooting.
  std::vector<float> gradient(row_count), hessian(row_count);
  const auto stopped_early = [&] {
    return validates && options.validation_chooses && options.early_stop > 0 &&
           state.rounds - state.best_rounds >= options.early_stop;
  };
  while (state.rounds < options.rounds && !stopped_early()) {
    if (options.stop && options.stop()) {
      TS_RETURN_IF_ERROR(keep(booster.handle, options, state));
      return Error{ErrorCode::kCancelled, "",
                   "training was interrupted after " + std::to_string(state.rounds) + " rounds"};
    }
    Loss loss{options.loss};
    TS_RETURN_IF_ERROR(visit_sums(booster.handle, matrix, train, true, [&](size_t p, float sum) {
      const float stability = std::max(
          1.0F, static_cast<float>(train.begin[p + 1] - train.begin[p]) * static_cast<float>(options.eta));
      const float weight = train.weights[p], error = sum - train.labels[p];
      loss.add(error, weight);
      float slope = error, curvature = 1;
      if (options.loss == PackSumLoss::kRelative) {
        const RelativeLoss relative(error);
        slope = relative.gradient;
        curvature = relative.hessian;
      } else if (options.loss == PackSumLoss::kHuber) {
        slope = std::clamp(error, -1.0F, 1.0F);
      }
      for (size_t r = train.begin[p]; r < train.begin[p + 1]; ++r) {
        gradient[r] = weight * slope;
        hessian[r] = weight * curvature * stability;
      }
    }));
    TS_XGBOOST(
        XGBoosterBoostOneIter(booster.handle, matrix.handle, gradient.data(), hessian.data(), row_count));
    ++state.rounds;
    Loss validation_loss{options.loss};
    if (validates) {
      TS_RETURN_IF_ERROR(
          visit_sums(booster.handle, validation_matrix, validation, false, [&](size_t p, float sum) {
            validation_loss.add(sum - validation.labels[p], validation.weights[p]);
          }));
      if (state.best_rounds == 0 || validation_loss.mean() < state.best_loss) {
        state.best_rounds = state.rounds;
        state.best_loss = validation_loss.mean();
      }
    }
    if (options.progress) options.progress(state.rounds, loss.mean(), validation_loss.mean());
    if (state.rounds % kCheckpointRounds == 0) TS_RETURN_IF_ERROR(keep(booster.handle, options, state));
  }

  const float* predicted = nullptr;
  bst_ulong predicted_count = 0;
  TS_XGBOOST(XGBoosterPredict(booster.handle, matrix.handle, 0, 0, 0, &predicted_count, &predicted));
  PackSumFit fit;
  fit.row_predictions.assign(predicted, predicted + predicted_count);
  const auto kept = validates && options.validation_chooses ? state.best_rounds : state.rounds;
  TS_ASSIGN_OR_RETURN(const std::vector<Tree> trees, read_trees(booster.handle, columns, kept));
  TS_ASSIGN_OR_RETURN(fit.forest, Forest::create(trees, width));
  return fit;
}

}  // namespace tensorsmith::learn
