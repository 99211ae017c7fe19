// XGBoost over per-store rows; the prediction for a program is the sum over its rows
// (learn/gbt/pack_sum.h). The device's figures are columns too; if all data comes from one device,
// they are constant and never split on.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "learn/gbt/forest_file.h"
#include "learn/gbt/gbt_fit.h"
#include "learn/gbt/pack_sum.h"
#include "learn/latency/device_columns.h"
#include "learn/latency/evaluation.h"
#include "learn/latency/held_out.h"
#include "learn/latency/kinds.h"
#include "learn/latency/parameters.h"
#include "learn/latency/queries.h"
#include "learn/online/online.h"
#include "record/disturbance.h"

namespace tensorsmith::learn {

namespace {

using Json = nlohmann::json;

constexpr int kWidth = feature::kPerStoreWidth + kDeviceColumns;
// Weight of failed programs if labels are speeds (their label is 0).
constexpr float kMinWeight = 0.05F;
// Rounds of the smaller models that are trained with a device left out.
constexpr int kHeldOutRounds = 150;

std::string column_name(size_t column) {
  constexpr size_t kOfProgram = feature::kPerStoreColumns.size();
  return column < kOfProgram ? feature::kPerStoreColumns[column].name()
                             : kDeviceSchema[column - kOfProgram].name();
}

// The quantity that the trees' sum predicts.
enum class Label : uint8_t {
  kSeconds,       // log seconds
  kSecondsPerOp,  // log (seconds / the workload's operations)
  kSpeed,         // the task's fastest seconds / seconds; can only rank
};

struct XgboostOptions {
  std::string label = "seconds";
  int early_stop = 50;
  PackSumOptions fit;

  XgboostOptions() {
    fit.max_depth = 8;
    fit.gamma = 0.003;
    fit.min_child_weight = 2;
    fit.eta = 0.1;
    fit.rounds = 500;
  }
  Label label_kind() const {
    return label == "seconds"      ? Label::kSeconds
           : label == "throughput" ? Label::kSecondsPerOp
                                   : Label::kSpeed;
  }
  // Reads the given values and returns all values.
  Result<Json> read(const Json& given) {
    Parameters parameters(given);
    parameters.choice("label", label, {"seconds", "throughput", "rank"});
    parameters.integer("max_depth", fit.max_depth, 1, 15);
    parameters.real("gamma", fit.gamma, 0, 1e6);
    parameters.real("min_child_weight", fit.min_child_weight, 0, 1e6);
    parameters.real("eta", fit.eta, 1e-4, 1);
    parameters.integer("rounds", fit.rounds, 1, 100'000);
    parameters.integer("max_bins", fit.max_bins, 2, 65'535);
    parameters.integer("early_stop", early_stop, 0, 100'000);
    return parameters.finish();
  }
};

// Appends the rows of the program, each with the device's columns.
void append_rows(const feature::LeafFeatures& leaves, const std::array<float, kDeviceColumns>& device,
                 std::vector<float>& out) {
  for (int l = 0; l < leaves.vectors.rows; ++l) {
    if (leaves.row_numbers[l] < 0) continue;
    const auto row = leaves.vectors.row(l);
    out.insert(out.end(), row.begin(), row.end());
    out.insert(out.end(), device.begin(), device.end());
  }
}

class XgboostModel final : public CostModel {
 public:
  ModelCard model_card;
  Label label = Label::kSeconds;
  double bias = 0;  // added to the trees' sum
  double log_sigma = 0;
  Forest forest;

  // Returns the trees' sum plus the bias, in the unit of the label.
  std::vector<double> raw(std::span<const ProgramQuery> queries) const {
    std::vector<float> rows, values;
    std::vector<size_t> ends;
    for (const ProgramQuery& query : queries) {
      append_rows(*query.leaves, device_columns(*query.device), rows);
      ends.push_back(rows.size() / kWidth);
    }
    values.resize(rows.size() / kWidth);
    forest.predict(rows, values);
    std::vector<double> out;
    size_t row = 0;
    for (const size_t end : ends) {
      double sum = bias;
      for (; row < end; ++row) sum += values[row];
      out.push_back(sum);
    }
    return out;
  }

  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override {
    const std::vector<double> sums = raw(queries);
    std::vector<Prediction> out;
    UnseenEffects unseen(model_card);
    for (size_t i = 0; i < sums.size(); ++i) {
      double logarithm = label == Label::kSpeed ? -sums[i] : sums[i];
      if (label == Label::kSecondsPerOp) logarithm += std::log(std::max(queries[i].workload->flops, 1.0));
      out.push_back({std::exp(logarithm), log_sigma});
      if (label != Label::kSpeed) unseen.apply(*queries[i].device, out.back());
    }
    return out;
  }
  bool ranks_only() const override { return label == Label::kSpeed; }
  const ModelCard& card() const override { return model_card; }

  Status save(const std::string& path) const override {
    ModelFile file;
    file.card = model_card;
    const double numbers[] = {bias, log_sigma};
    const uint8_t kind[] = {static_cast<uint8_t>(label)};
    file.add<double>("bias_and_log_sigma", {2}, numbers);
    file.add<uint8_t>("label", {1}, kind);
    add_forest(file, "trees", forest);
    return write_model_file(file, path);
  }
};

Result<std::unique_ptr<CostModel>> read_xgboost(ModelFile file) {
  auto model = std::make_unique<XgboostModel>();
  TS_ASSIGN_OR_RETURN(const auto numbers, file.values<double>("bias_and_log_sigma", {2}));
  TS_ASSIGN_OR_RETURN(const auto label, file.values<uint8_t>("label", {1}));
  if (label[0] > static_cast<uint8_t>(Label::kSpeed) || !(std::abs(numbers[0]) < 1e3) ||
      !(numbers[1] >= 0 && numbers[1] < 1e3))
    return Error{ErrorCode::kCorrupt, "", "the model's numbers are out of range"};
  TS_ASSIGN_OR_RETURN(model->forest, read_forest(file, "trees", kWidth));
  model->model_card = std::move(file.card);
  model->label = static_cast<Label>(label[0]);
  model->bias = numbers[0];
  model->log_sigma = numbers[1];
  return std::unique_ptr<CostModel>(std::move(model));
}

// --- training

// Returns rows and labels of the records whose label is known. base: its prediction is subtracted
// from the labels.
Result<PackSumData> gather(const TrainingData& data, std::span<const int64_t> records, Label label,
                           const XgboostModel* base) {
  std::vector<int64_t> used;
  std::vector<double> seconds;
  std::vector<float> trusts;
  std::vector<int> tasks;
  size_t rows = 0;
  for (const int64_t i : records) {
    const Store::Entry entry = data.store->entry(i);
    if (entry.rows == 0 || (entry.failed() && label != Label::kSpeed)) continue;
    used.push_back(i);
    rows += entry.rows;
    seconds.push_back(entry.failed() ? INFINITY : entry.mean_seconds);
    trusts.push_back(static_cast<float>(record::trust(entry.disturbance)));
    tasks.push_back(entry.workload * data.devices.size() + entry.device);
  }
  std::vector<float> speeds;
  if (label == Label::kSpeed) speeds = relative_speeds(seconds, tasks);
  PackSumData out;
  out.width = kWidth;
  out.column_name = column_name;
  out.values.reserve(rows * kWidth);
  QueryBatch batch(*data.store, data.devices, {.leaves = true});
  std::vector<float> program;
  for (size_t i = 0; i < used.size(); ++i) {
    TS_ASSIGN_OR_RETURN(const auto queries, batch.make(std::span(used).subspan(i, 1)));
    const ProgramQuery& query = queries[0];
    double y = label == Label::kSpeed ? speeds[i] : std::log(seconds[i]);
    if (label == Label::kSecondsPerOp) y -= std::log(std::max(query.workload->flops, 1.0));
    if (base != nullptr) y -= base->raw(queries)[0];
    program.clear();
    append_rows(*query.leaves, device_columns(*query.device), program);
    const float weight = label == Label::kSpeed ? std::max(speeds[i], kMinWeight) : 1.0F;
    out.add(program, static_cast<float>(y), weight * trusts[i]);
  }
  return out;
}

class XgboostTrainer final : public CostModelTrainer {
 public:
  XgboostTrainer(XgboostOptions options, Json parameters, bool hold_out = true)
      : options_(std::move(options)), parameters_(std::move(parameters)), hold_out_(hold_out) {}

  Result<std::unique_ptr<CostModel>> train(const TrainingData& data,
                                           const TrainingControl& control) const override {
    return fit(nullptr, data, control);
  }
  Result<std::unique_ptr<CostModel>> fine_tune(const CostModel& model, const TrainingData& data,
                                               const TrainingControl& control) const override {
    const auto* base = dynamic_cast<const XgboostModel*>(&model);
    if (base == nullptr || base->label != options_.label_kind())
      return Error{ErrorCode::kInvalidArgument, "", "the model to fine-tune has a different kind or label"};
    return fit(base, data, control);
  }

 private:
  // If there is a base, further trees learn what it does not explain.
  Result<std::unique_ptr<CostModel>> fit(const XgboostModel* base, const TrainingData& data,
                                         const TrainingControl& control) const {
    const Label label = options_.label_kind();
    TS_ASSIGN_OR_RETURN(PackSumData train, gather(data, data.train, label, base));
    TS_ASSIGN_OR_RETURN(PackSumData validation, gather(data, data.validation, label, base));
    auto model = std::make_unique<XgboostModel>();
    model->label = label;
    double mean = 0;
    for (const float y : train.labels) mean += y;
    mean /= std::max<size_t>(train.programs(), 1);
    const auto offset = static_cast<float>(mean);
    for (float& y : train.labels) y -= offset;
    for (float& y : validation.labels) y -= offset;
    model->bias = mean + (base != nullptr ? base->bias : 0);

    PackSumOptions fit = options_.fit;
    fit.early_stop = options_.early_stop;
    fit.threads = control.threads;
    fit.seed = control.seed;
    fit.stop = control.stop;
    if (control.progress) {
      fit.progress = [&](int rounds, double loss, double validation_loss) {
        control.progress({rounds, options_.fit.rounds, loss, validation_loss});
      };
    }
    const std::string training = training_hash("xgboost", data, control, parameters_, base);
    if (!control.checkpoint.empty()) {
      TS_ASSIGN_OR_RETURN(fit.resume, read_checkpoint(control.checkpoint, training));
      if (control.owns_checkpoint) control.owns_checkpoint();
      fit.checkpoint = [&](const PackSumState& state) {
        return write_checkpoint(state, training, control.checkpoint);
      };
    }
    TS_ASSIGN_OR_RETURN(PackSumFit fitted, fit_pack_sum(std::move(train), std::move(validation), fit));
    if (base != nullptr) {
      model->forest = base->forest;
      model->forest.append(fitted.forest);
    } else {
      model->forest = std::move(fitted.forest);
    }
    model->model_card =
        make_card("xgboost", data, control, parameters_, base != nullptr ? &base->card() : nullptr);
    if (!model->ranks_only()) {
      const auto& chosen = data.validation.empty() ? data.train : data.validation;
      TS_ASSIGN_OR_RETURN(const Evaluation seen, evaluate_records(*model, *data.store, data.devices, chosen));
      model->log_sigma = seen.log_sigma();
      if (hold_out_) TS_RETURN_IF_ERROR(hold_out(data, control, model->model_card));
    }
    TS_ASSIGN_OR_RETURN(model->model_card.metrics, validation_metrics(*model, data));
    return std::unique_ptr<CostModel>(std::move(model));
  }

  // Measures the errors on unseen devices, with smaller models of the same recipe.
  Status hold_out(const TrainingData& data, const TrainingControl& control, ModelCard& card) const {
    XgboostOptions smaller = options_;
    smaller.fit.rounds = std::min(smaller.fit.rounds, kHeldOutRounds);
    TrainingControl quiet = control;
    quiet.checkpoint.clear();
    quiet.progress = nullptr;
    return hold_out_devices(
        data, control.seed,
        [&](const TrainingData& others) {
          return XgboostTrainer(smaller, parameters_, false).train(others, quiet);
        },
        card);
  }

  static Status write_checkpoint(const PackSumState& state, const std::string& training,
                                 const std::string& path) {
    ModelFile file;
    file.card = checkpoint_card(training);
    const int32_t rounds[] = {state.rounds, state.best_rounds};
    const double loss[] = {state.best_loss};
    file.add<uint8_t>("booster", {std::ssize(state.booster)}, state.booster);
    file.add<int32_t>("rounds", {2}, rounds);
    file.add<double>("best_loss", {1}, loss);
    return write_model_file(file, path);
  }
  static Result<PackSumState> read_checkpoint(const std::string& path, const std::string& training) {
    PackSumState state;
    TS_ASSIGN_OR_RETURN(const auto file, open_checkpoint(path, training));
    if (!file) return state;
    TS_ASSIGN_OR_RETURN(state.booster, file->values<uint8_t>("booster", {-1}));
    TS_ASSIGN_OR_RETURN(const auto rounds, file->values<int32_t>("rounds", {2}));
    TS_ASSIGN_OR_RETURN(const auto loss, file->values<double>("best_loss", {1}));
    state.rounds = rounds[0];
    state.best_rounds = rounds[1];
    state.best_loss = loss[0];
    return state;
  }

  XgboostOptions options_;
  Json parameters_;
  bool hold_out_;
};

}  // namespace

const CostModelKind& xgboost_kind() {
  static const CostModelKind kind = {
      "xgboost",
      [](const Json& given) -> Result<std::unique_ptr<CostModelTrainer>> {
        XgboostOptions options;
        TS_ASSIGN_OR_RETURN(Json all, options.read(given));
        return std::unique_ptr<CostModelTrainer>(std::make_unique<XgboostTrainer>(options, std::move(all)));
      },
      [](const UntrainedOptions& options) {
        GbtOptions gbt = GbtOptions::online();
        gbt.seed = options.seed;
        gbt.threads = options.threads;
        return make_online_xgboost(gbt);
      },
      read_xgboost};
  return kind;
}

}  // namespace tensorsmith::learn
