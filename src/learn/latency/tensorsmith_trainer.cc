// Training of our own latency model (learn/latency/tensorsmith_model.h).
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/rng.h"
#include "learn/gbt/pack_sum.h"
#include "learn/latency/evaluation.h"
#include "learn/latency/parameters.h"
#include "learn/latency/queries.h"
#include "learn/latency/resource_fit.h"
#include "learn/latency/tensorsmith_model.h"

namespace tensorsmith::learn {

namespace {

using feature::ProgramKind;
using Json = nlohmann::json;

// Factors are few; more records of a structure and device than this change nothing.
constexpr size_t kFactorRecords = 6000;
constexpr size_t kLeastFactorRecords = 20;
// Records that a shift needs, to be more than noise.
constexpr size_t kLeastCalibrationRecords = 30;

struct Options {
  std::string base = "resources";
  std::string loss = "relative";
  bool device_columns = true;
  bool calibrate = true;
  int members = 3;      // 0: the base alone
  int folds = 4;        // for calibration on workloads that were not seen
  int new_rounds = 60;  // of trees, when training goes on from a model
  PackSumOptions fit;

  Options() {
    fit.max_depth = 6;
    fit.gamma = 0;
    fit.min_child_weight = 20;
    fit.eta = 0.05;
    fit.lambda = 5;
    fit.row_share = 0.7;
    fit.node_column_share = 0.3;
    fit.rounds = 300;
    fit.max_bins = 128;
  }
  TensorsmithBase base_kind() const {
    return base == "resources"  ? TensorsmithBase::kResources
           : base == "roofline" ? TensorsmithBase::kRoofline
                                : TensorsmithBase::kNone;
  }
  Result<Json> read(const Json& given) {
    Parameters parameters(given);
    parameters.choice("base", base, {"resources", "roofline", "none"});
    parameters.choice("loss", loss, {"relative", "squared"});
    parameters.flag("device_columns", device_columns);
    parameters.flag("calibrate", calibrate);
    parameters.integer("members", members, 0, 100);
    parameters.integer("folds", folds, 2, 20);
    parameters.integer("new_rounds", new_rounds, 0, 100'000);
    parameters.integer("rounds", fit.rounds, 1, 100'000);
    parameters.integer("max_depth", fit.max_depth, 1, 15);
    parameters.real("min_child_weight", fit.min_child_weight, 0, 1e6);
    parameters.real("eta", fit.eta, 1e-4, 1);
    parameters.real("lambda", fit.lambda, 0, 1e6);
    parameters.real("row_share", fit.row_share, 0.01, 1);
    parameters.real("node_column_share", fit.node_column_share, 0.01, 1);
    parameters.integer("max_bins", fit.max_bins, 2, 65'535);
    return parameters.finish();
  }
};

// Measured programs of one kind. Summaries in flat arrays: there may be millions of them.
struct KindData {
  int resources = 0, columns = 0;
  std::vector<float> values;  // by program: resources, columns
  std::vector<double> seconds, roofline;
  std::vector<uint32_t> workload, device;
  std::vector<uint8_t> structure;

  size_t size() const { return seconds.size(); }
  SummarizedProgram program(ProgramKind kind, size_t i) const {
    SummarizedProgram out;
    const float* from = values.data() + i * static_cast<size_t>(resources + columns);
    out.summary.kind = kind;
    out.summary.roofline_seconds = roofline[i];
    out.summary.resources.assign(from, from + resources);
    out.summary.columns.assign(from + resources, from + resources + columns);
    out.structure = static_cast<feature::WorkloadStructure>(structure[i]);
    return out;
  }
};
using AllData = std::array<KindData, feature::kProgramKinds>;

Result<AllData> gather(const LatencyData& data, std::span<const int64_t> records) {
  AllData out;
  QueryBatch batch(*data.store, data.devices, true);
  AccessCache accesses;
  for (const int64_t record : records) {
    const Store::Entry entry = data.store->entry(record);
    if (entry.failed() || entry.leaves == 0 || !(entry.mean_seconds > 0)) continue;
    TS_ASSIGN_OR_RETURN(const auto queries, batch.make({&record, 1}));
    const LatencyQuery& query = queries[0];
    const feature::WorkloadAccess& access = accesses.of(*query.workload);
    const auto summary = feature::summarize_program(access, *query.leaves, *query.trace, *query.device);
    KindData& kind = out[static_cast<size_t>(summary.kind)];
    kind.resources = static_cast<int>(summary.resources.size());
    kind.columns = static_cast<int>(summary.columns.size());
    for (const double seconds : summary.resources) kind.values.push_back(static_cast<float>(seconds));
    kind.values.insert(kind.values.end(), summary.columns.begin(), summary.columns.end());
    kind.seconds.push_back(entry.mean_seconds);
    kind.roofline.push_back(summary.roofline_seconds);
    kind.workload.push_back(entry.workload);
    kind.device.push_back(entry.device);
    kind.structure.push_back(static_cast<uint8_t>(access.structure));
  }
  return out;
}

// Tasks have between few and thousands of records: each record weighs 1 / sqrt(records of its task), so that
// a task's weight grows with its records, but slower. Mean 1.
std::vector<double> weights_of(const KindData& data, std::span<const size_t> chosen) {
  std::map<std::pair<uint32_t, uint32_t>, double> count;
  for (const size_t i : chosen) ++count[{data.workload[i], data.device[i]}];
  std::vector<double> out;
  double sum = 0;
  for (const size_t i : chosen) {
    out.push_back(1 / std::sqrt(count[{data.workload[i], data.device[i]}]));
    sum += out.back();
  }
  for (double& w : out) w *= static_cast<double>(out.size()) / sum;
  return out;
}

template <class T>
void shuffle(std::vector<T>& items, Rng& rng) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
}

// New factors for each structure and device among the chosen programs.
void fit_resources(TensorsmithModel& model, ProgramKind kind, const KindData& data,
                   std::span<const size_t> chosen, const LatencyData& source, uint64_t seed) {
  std::map<std::pair<uint8_t, uint32_t>, std::vector<size_t>> groups;
  for (const size_t i : chosen) groups[{data.structure[i], data.device[i]}].push_back(i);
  Rng rng(seed);
  for (auto& [key, members] : groups) {
    if (members.size() < kLeastFactorRecords) continue;
    shuffle(members, rng);
    members.resize(std::min(members.size(), kFactorRecords));
    std::vector<double> rows;
    for (const size_t i : members) {
      const float* from = data.values.data() + i * static_cast<size_t>(data.resources + data.columns);
      for (int j = 0; j < data.resources; ++j) rows.push_back(static_cast<double>(from[j]) / data.seconds[i]);
    }
    const std::string& device = source.devices[key.second]->name;
    const auto structure = static_cast<feature::WorkloadStructure>(key.first);
    auto& entries = model.kinds[static_cast<size_t>(kind)].factors.entries;
    std::erase_if(entries, [&](const auto& e) { return e.structure == structure && e.device == device; });
    entries.push_back({structure, device, fit_factors(rows, weights_of(data, members), data.resources)});
  }
}

class TensorsmithTrainer final : public LatencyTrainer {
 public:
  TensorsmithTrainer(Options options, Json parameters)
      : options_(std::move(options)), parameters_(std::move(parameters)) {}

  Result<std::unique_ptr<LatencyModel>> train(const LatencyData& data,
                                              const TrainingControl& control) const override {
    return fit(nullptr, data, control);
  }
  // New factors for the devices of the data, and further trees on what then is left.
  Result<std::unique_ptr<LatencyModel>> fine_tune(const LatencyModel& model, const LatencyData& data,
                                                  const TrainingControl& control) const override {
    const auto* before = dynamic_cast<const TensorsmithModel*>(&model);
    if (before == nullptr || before->base != options_.base_kind() ||
        before->device_columns != options_.device_columns)
      return Error{ErrorCode::kInvalidArgument, "",
                   "the model to go on from is of another kind, or its base or columns are others"};
    return fit(before, data, control);
  }

 private:
  // What a training does, by steps: one a forest.
  struct Run {
    const LatencyData& data;
    const TrainingControl& control;
    int steps = 0, done = 0;
    std::string hash;
    std::vector<Forest::Arrays> forests;  // in the order of the steps, as the checkpoint keeps them
    std::vector<int> widths;
  };

  Result<std::unique_ptr<LatencyModel>> fit(const TensorsmithModel* before, const LatencyData& data,
                                            const TrainingControl& control) const {
    TS_ASSIGN_OR_RETURN(const AllData train, gather(data, data.train));
    TS_ASSIGN_OR_RETURN(const AllData validation, gather(data, data.validation));
    Run run{data, control, 0, 0, training_hash("tensorsmith", data, control, parameters_, before), {}, {}};
    if (std::all_of(train.begin(), train.end(), [](const KindData& k) { return k.size() == 0; }))
      return Error{ErrorCode::kInvalidArgument, "", "no measured programs to train on"};
    // A validation part of other workloads says what to expect of workloads not seen, but has few of them:
    // the training part's own, each left out in turn, say it too. Where both parts share their workloads, as
    // the programs to come will, only the validation part does.
    const bool strict = !share_workloads(train, validation);
    const int calibration_folds = options_.calibrate && strict && before == nullptr ? options_.folds : 0;
    for (const KindData& kind : train) {
      if (kind.size() > 0) run.steps += options_.members + (options_.members > 0 ? calibration_folds : 0);
    }
    TS_RETURN_IF_ERROR(read_checkpoint(run));

    auto model = std::make_unique<TensorsmithModel>();
    if (before != nullptr) *model = *before;
    model->base = options_.base_kind();
    model->device_columns = options_.device_columns;
    for (int k = 0; k < feature::kProgramKinds; ++k) {
      const auto kind = static_cast<ProgramKind>(k);
      const KindData& programs = train[static_cast<size_t>(k)];
      if (programs.size() == 0) continue;
      std::vector<size_t> all(programs.size());
      std::iota(all.begin(), all.end(), size_t{0});
      TS_RETURN_IF_ERROR(fit_kind(*model, before, kind, programs, all, options_.members, run));
      if (!options_.calibrate) continue;
      Errors errors;
      const KindData& unseen = validation[static_cast<size_t>(k)];
      std::vector<size_t> chosen(unseen.size());
      std::iota(chosen.begin(), chosen.end(), size_t{0});
      add_errors(*model, kind, unseen, chosen, data, errors);
      if (calibration_folds > 0)
        TS_RETURN_IF_ERROR(add_fold_errors(*model, kind, programs, calibration_folds, run, errors));
      calibrate(*model, kind, errors, data);
    }
    model->model_card =
        make_card("tensorsmith", data, control, parameters_, before != nullptr ? &before->card() : nullptr);
    TS_ASSIGN_OR_RETURN(model->model_card.metrics, validation_metrics(*model, data));
    return std::unique_ptr<LatencyModel>(std::move(model));
  }

  // Factors and trees of a kind from the chosen programs.
  Status fit_kind(TensorsmithModel& model, const TensorsmithModel* before, ProgramKind kind,
                  const KindData& data, std::span<const size_t> chosen, int members, Run& run) const {
    if (options_.base_kind() == TensorsmithBase::kResources)
      fit_resources(model, kind, data, chosen, run.data, run.control.seed);
    auto& forests = model.kinds[static_cast<size_t>(kind)].members;
    const int rounds = before != nullptr ? options_.new_rounds : options_.fit.rounds;
    if (members == 0 || rounds == 0) return {};
    if (before == nullptr || forests.empty()) forests.clear();
    const bool goes_on = !forests.empty();

    PackSumData rows;
    rows.width = TensorsmithModel::width(kind);
    // The names are for errors of values that are not finite, which a summary never has.
    rows.column_name = [](int) { return "of a program summary"; };
    const std::vector<double> weights = weights_of(data, chosen);
    std::vector<float> row, all;
    std::vector<double> labels;
    for (const size_t i : chosen) {
      SummarizedProgram program = data.program(kind, i);
      program.base =
          model.base_seconds(program.summary, program.structure, run.data.devices[data.device[i]]->name);
      model.append_row(program, all);
      labels.push_back(std::log(data.seconds[i] / program.base));
    }
    std::vector<double> sums(chosen.size(), 0);
    if (goes_on) model.add_trees(kind, all, sums);
    const auto width = static_cast<size_t>(rows.width);
    for (size_t i = 0; i < chosen.size(); ++i)
      rows.add(std::span(all).subspan(i * width, width), static_cast<float>(labels[i] - sums[i]),
               static_cast<float>(weights[i]));
    std::vector<float>().swap(all);

    for (int m = 0; m < members; ++m) {
      TS_ASSIGN_OR_RETURN(Forest forest, next_forest(rows, kind, rounds, run));
      if (goes_on && static_cast<size_t>(m) < forests.size()) {
        forests[static_cast<size_t>(m)].append(forest);
      } else if (!goes_on) {
        forests.push_back(std::move(forest));
      }
    }
    return {};
  }

  // The run's next forest: fitted, or from the checkpoint.
  Result<Forest> next_forest(const PackSumData& rows, ProgramKind kind, int rounds, Run& run) const {
    const auto at = static_cast<size_t>(run.done++);
    if (at < run.forests.size()) return Forest::from_arrays(run.forests[at], rows.width);
    PackSumOptions fit = options_.fit;
    fit.rounds = rounds;
    // Fewer programs of simpler structure need smaller trees.
    if (kind == ProgramKind::kGpuFlat || kind == ProgramKind::kCpuOther)
      fit.max_depth = std::max(1, fit.max_depth - 2);
    fit.loss = options_.loss == "relative" ? PackSumLoss::kRelative : PackSumLoss::kSquared;
    fit.threads = run.control.threads;
    fit.seed = run.control.seed + at;
    fit.stop = run.control.stop;
    if (run.control.progress) {
      fit.progress = [&run, at, rounds](int round, double loss, double validation_loss) {
        run.control.progress(
            {static_cast<int>(at) * rounds + round, run.steps * rounds, loss, validation_loss});
      };
    }
    TS_ASSIGN_OR_RETURN(PackSumFit fitted, fit_pack_sum(rows, {}, fit));
    run.forests.push_back(fitted.forest.to_arrays());
    run.widths.push_back(rows.width);
    TS_RETURN_IF_ERROR(write_checkpoint(run));
    return std::move(fitted.forest);
  }

  // log(predicted / measured), without the shift, by structure and device number.
  using Errors = std::map<std::pair<uint8_t, uint32_t>, std::vector<double>>;

  static void add_errors(const TensorsmithModel& model, ProgramKind kind, const KindData& data,
                         std::span<const size_t> chosen, const LatencyData& source, Errors& errors) {
    std::vector<double> sums(chosen.size(), 0), bases;
    std::vector<float> rows;
    for (const size_t i : chosen) {
      SummarizedProgram program = data.program(kind, i);
      program.base =
          model.base_seconds(program.summary, program.structure, source.devices[data.device[i]]->name);
      model.append_row(program, rows);
      bases.push_back(program.base);
    }
    model.add_trees(kind, rows, sums);
    for (size_t i = 0; i < chosen.size(); ++i)
      errors[{data.structure[chosen[i]], data.device[chosen[i]]}].push_back(
          sums[i] + std::log(bases[i] / data.seconds[chosen[i]]));
  }

  // Of programs of workloads that a fit has not seen: the workloads go round the folds.
  Status add_fold_errors(const TensorsmithModel& model, ProgramKind kind, const KindData& data, int folds,
                         Run& run, Errors& errors) const {
    std::set<uint32_t> present(data.workload.begin(), data.workload.end());
    std::vector<uint32_t> order(present.begin(), present.end());
    Rng rng(run.control.seed);
    shuffle(order, rng);
    std::map<uint32_t, int> fold_of;
    for (size_t i = 0; i < order.size(); ++i) fold_of[order[i]] = static_cast<int>(i) % folds;
    for (int fold = 0; fold < folds; ++fold) {
      std::vector<size_t> inside, outside;
      for (size_t i = 0; i < data.size(); ++i)
        (fold_of[data.workload[i]] == fold ? inside : outside).push_back(i);
      TensorsmithModel other;
      other.base = model.base;
      other.device_columns = model.device_columns;
      if (inside.empty() || outside.empty()) continue;
      TS_RETURN_IF_ERROR(fit_kind(other, nullptr, kind, data, outside, std::min(options_.members, 1), run));
      add_errors(other, kind, data, inside, run.data, errors);
    }
    return {};
  }

  static bool share_workloads(const AllData& a, const AllData& b) {
    std::set<uint32_t> seen;
    for (const KindData& kind : a) seen.insert(kind.workload.begin(), kind.workload.end());
    return std::any_of(b.begin(), b.end(), [&](const KindData& kind) {
      return std::any_of(kind.workload.begin(), kind.workload.end(),
                         [&](uint32_t workload) { return seen.contains(workload); });
    });
  }

  // The shift with the lowest mean percentage error, and the deviation that covers as much as a normal's.
  static void calibrate(TensorsmithModel& model, ProgramKind kind, Errors& errors,
                        const LatencyData& source) {
    for (auto& [group, list] : errors) {
      if (list.size() < kLeastCalibrationRecords) continue;
      Calibration best;
      double lowest = INFINITY;
      for (int step = -10; step <= 20; ++step) {
        const double shift = 0.02 * step;
        double sum = 0;
        for (const double e : list) sum += std::abs(std::expm1(e - shift));
        if (sum < lowest) {
          lowest = sum;
          best.shift = shift;
        }
      }
      for (double& e : list) e = std::abs(e - best.shift);
      const auto at = list.begin() + static_cast<std::ptrdiff_t>(0.6827 * static_cast<double>(list.size()));
      std::nth_element(list.begin(), at, list.end());
      best.log_sigma = *at;
      model.calibrations[{kind, static_cast<feature::WorkloadStructure>(group.first),
                          source.devices[group.second]->name}] = best;
    }
  }

  static std::string step_name(size_t step) { return "step" + std::to_string(step); }

  static Status write_checkpoint(const Run& run) {
    if (run.control.checkpoint.empty()) return {};
    ModelFile file;
    file.card = checkpoint_card(run.hash);
    file.add<int32_t>("widths", {static_cast<int64_t>(run.widths.size())}, run.widths);
    for (size_t i = 0; i < run.forests.size(); ++i) {
      const Forest::Arrays& arrays = run.forests[i];
      const auto nodes = static_cast<int64_t>(arrays.number.size());
      file.add<int32_t>(step_name(i) + ".sizes", {static_cast<int64_t>(arrays.sizes.size())}, arrays.sizes);
      file.add<float>(step_name(i) + ".number", {nodes}, arrays.number);
      file.add<uint16_t>(step_name(i) + ".feature", {nodes}, arrays.feature);
      file.add<uint16_t>(step_name(i) + ".left", {nodes}, arrays.left);
    }
    return write_model_file(file, run.control.checkpoint);
  }
  static Status read_checkpoint(Run& run) {
    if (run.control.checkpoint.empty()) return {};
    TS_ASSIGN_OR_RETURN(const auto file, open_checkpoint(run.control.checkpoint, run.hash));
    if (!file) return {};
    TS_ASSIGN_OR_RETURN(run.widths, file->values<int32_t>("widths", {-1}));
    for (size_t i = 0; i < run.widths.size(); ++i) {
      Forest::Arrays arrays;
      TS_ASSIGN_OR_RETURN(arrays.sizes, file->values<int32_t>(step_name(i) + ".sizes", {-1}));
      TS_ASSIGN_OR_RETURN(arrays.number, file->values<float>(step_name(i) + ".number", {-1}));
      TS_ASSIGN_OR_RETURN(arrays.feature, file->values<uint16_t>(step_name(i) + ".feature", {-1}));
      TS_ASSIGN_OR_RETURN(arrays.left, file->values<uint16_t>(step_name(i) + ".left", {-1}));
      run.forests.push_back(std::move(arrays));
    }
    return {};
  }

  Options options_;
  Json parameters_;
};

}  // namespace

const LatencyKind& tensorsmith_kind() {
  static const LatencyKind kind = {
      "tensorsmith",
      [](const Json& given) -> Result<std::unique_ptr<LatencyTrainer>> {
        Options options;
        TS_ASSIGN_OR_RETURN(Json all, options.read(given));
        return std::unique_ptr<LatencyTrainer>(std::make_unique<TensorsmithTrainer>(options, std::move(all)));
      },
      TensorsmithModel::from_file};
  return kind;
}

}  // namespace tensorsmith::learn
