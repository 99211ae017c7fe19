// Training of Tensorsmith's own latency model (learn/latency/tensorsmith_model.h).
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "learn/latency/evaluation.h"
#include "learn/latency/held_out.h"
#include "learn/latency/parameters.h"
#include "learn/latency/tensorsmith_forests.h"
#include "learn/latency/tensorsmith_model.h"

namespace tensorsmith::learn {

namespace {

using feature::ProgramKind;
using Json = nlohmann::json;

// Least number of workloads for a structure to have its own calibration.
constexpr size_t kLeastCalibrationTasks = 3;
// When training continues, a structure with n workloads gets n / (n + kShiftTasks) of its shift.
// The fits for the folds leave out some of few workloads and know the device less well than the
// model does, so part of their common error is not the model's.
constexpr double kShiftTasks = 4;
// Size of the small forests that predict unknown devices. Deeper or longer ones learn what is
// specific to their device.
constexpr int kDeviceRounds = 33, kDeviceDepth = 4;
// Factor on eta when training continues: the programs of few tasks are alike.
constexpr double kFewTasksEta = 1.0 / 3;

struct TensorsmithOptions {
  std::string base = "resources";
  std::string loss = "relative";
  bool device_columns = true;
  bool calibrate = true;
  bool hold_out = true;
  int members = 3;  // 0: no trees, only the base
  int rank_members = 1;
  double rank_weight = 0.25;
  int folds = 4;              // for calibration on unseen workloads
  int new_rounds = 120;       // rounds of new trees when training continues from a model
  bool known_devices = true;  // false: trains only what unknown devices need
  PackSumOptions fit;

  TensorsmithOptions() {
    fit.max_depth = 6;
    fit.gamma = 0;
    fit.min_child_weight = 50;
    fit.eta = 0.15;
    fit.lambda = 5;
    fit.row_share = 0.7;
    fit.node_column_share = 0.3;
    fit.rounds = 100;
    fit.max_bins = 128;
  }
  TensorsmithRecipe recipe() const {
    return {base == "resources"  ? BaseFormula::kResources
            : base == "roofline" ? BaseFormula::kRoofline
                                 : BaseFormula::kNone,
            device_columns, rank_weight};
  }
  PackSumLoss member_loss() const {
    return loss == "relative" ? PackSumLoss::kRelative : PackSumLoss::kSquared;
  }
  Result<Json> read(const Json& given) {
    Parameters parameters(given);
    parameters.choice("base", base, {"resources", "roofline", "none"});
    parameters.choice("loss", loss, {"relative", "squared"});
    parameters.flag("device_columns", device_columns);
    parameters.flag("calibrate", calibrate);
    parameters.flag("hold_out", hold_out);
    parameters.integer("members", members, 0, 100);
    parameters.integer("rank_members", rank_members, 0, 100);
    parameters.real("rank_weight", rank_weight, 0, 1);
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

class TensorsmithTrainer final : public CostModelTrainer {
 public:
  TensorsmithTrainer(TensorsmithOptions options, Json parameters)
      : options_(std::move(options)), parameters_(std::move(parameters)) {}

  Result<std::unique_ptr<CostModel>> train(const TrainingData& data,
                                           const TrainingControl& control) const override {
    return fit(nullptr, data, control);
  }
  // Fits new factors for the devices of the data, and then further trees on the remaining error.
  Result<std::unique_ptr<CostModel>> fine_tune(const CostModel& model, const TrainingData& data,
                                               const TrainingControl& control) const override {
    const auto* before = dynamic_cast<const TensorsmithModel*>(&model);
    const TensorsmithRecipe recipe = options_.recipe();
    if (before == nullptr || before->recipe().base != recipe.base ||
        before->recipe().device_columns != recipe.device_columns)
      return Error{ErrorCode::kInvalidArgument, "",
                   "the model to fine-tune differs in kind, base or columns"};
    return fit(before, data, control);
  }

 private:
  struct Run {
    const TensorsmithModel* before;  // the model that training continues from, may be nullptr
    const TrainingData& data;
    const TrainingControl& control;
    ForestFits forests;
  };

  Result<std::unique_ptr<CostModel>> fit(const TensorsmithModel* before, const TrainingData& data,
                                         const TrainingControl& control) const {
    TS_ASSIGN_OR_RETURN(const AllData train, gather_summaries(data, data.train));
    TS_ASSIGN_OR_RETURN(const AllData validation, gather_summaries(data, data.validation));
    if (std::ranges::all_of(train, [](const KindData& k) { return k.size() == 0; }))
      return Error{ErrorCode::kInvalidArgument, "", "no measured programs to train on"};
    // The calibration should show the error on workloads that the model has not seen. If the
    // validation part has other workloads, it shows this, but it has few of them; so
    // cross-validation over the workloads of the training part is used as well. If both parts share
    // their workloads, as the programs to come will, only the validation part is used. A model that
    // continues from another is meant for workloads that it was not trained on, so the folds are
    // used and a validation part that shares workloads is not.
    const bool shared = share_workloads(train, validation);
    const bool strict = before != nullptr || !shared;
    const int folds = options_.calibrate && strict ? options_.folds : 0;
    Run run{before, data, control,
            ForestFits(control, training_hash("tensorsmith", data, control, parameters_, before),
                       forest_count(before, train, folds))};
    TS_RETURN_IF_ERROR(run.forests.read_checkpoint());

    auto model = std::make_unique<TensorsmithModel>(first_model(before));
    ByProgramKind<DeviceScales> scales;
    for (const ProgramKind kind : kAllProgramKinds) {
      const KindData& programs = train[kind];
      if (programs.size() == 0) continue;
      TensorsmithParts& parts = model->kinds[kind];
      for (size_t i = 0; i < programs.size(); ++i)
        parts.calibration.note_size(programs.structure[i],
                                    data.store->workloads()[programs.workload[i]].flops);
      const std::vector<size_t> all = all_programs(programs), all_unseen = all_programs(validation[kind]);
      const ChosenPrograms unseen{validation[kind], all_unseen};
      TS_ASSIGN_OR_RETURN(scales[kind], fit_parts(parts, {programs, all}, unseen, run));
      if (!options_.calibrate) continue;
      ErrorsByDevice errors;
      if (!strict || !shared) add_errors(parts, unseen, data, errors);
      if (folds > 0) TS_RETURN_IF_ERROR(add_fold_errors(programs, folds, run, errors));
      parts.calibration.fit(errors, data, strict ? kLeastCalibrationTasks : 1,
                            before != nullptr ? kShiftTasks : 0);
    }
    complete_bases(*model, scales, data);
    model->model_card =
        make_card("tensorsmith", data, control, parameters_, before != nullptr ? &before->card() : nullptr);
    if (options_.hold_out) TS_RETURN_IF_ERROR(hold_out(train, data, control, model->model_card));
    TS_ASSIGN_OR_RETURN(model->model_card.metrics, validation_metrics(*model, data));
    return std::unique_ptr<CostModel>(std::move(model));
  }

  TensorsmithModel first_model(const TensorsmithModel* before) const {
    TensorsmithModel out = before != nullptr ? *before : TensorsmithModel(TensorsmithRecipe());
    out.set_recipe(options_.recipe());
    return out;
  }

  // Returns the number of forests that a training fits.
  int forest_count(const TensorsmithModel* before, const AllData& train, int folds) const {
    const int members =
        options_.members > 0 && options_.known_devices ? options_.members + options_.rank_members : 0;
    const int fold_members = options_.members > 0 ? 1 + std::min(options_.rank_members, 1) : 0;
    int out = 0;
    for (const KindData& programs : train) {
      if (programs.size() == 0) continue;
      out += members + folds * fold_members;
      if (fits_devices(before, programs.kind))
        out += std::set(programs.device.begin(), programs.device.end()).size();
    }
    return out;
  }

  static void complete_bases(TensorsmithModel& model, const ByProgramKind<DeviceScales>& scales,
                             const TrainingData& data) {
    if (model.recipe().base != BaseFormula::kResources) return;
    DeviceScales anywhere;
    for (const DeviceScales& of_kind : scales) {
      for (const auto& [device, list] : of_kind)
        anywhere[device].insert(anywhere[device].end(), list.begin(), list.end());
    }
    for (const ProgramKind kind : kAllProgramKinds)
      model.kinds[kind].base.complete(scales[kind], anywhere, data);
  }

  // Measures the errors on devices and for kinds of programs that the model has not seen. For the
  // latter it is the error of the roofline, which is used for them.
  Status hold_out(const AllData& train, const TrainingData& data, const TrainingControl& control,
                  ModelCard& card) const {
    // Keyed so that each program kind of a device has equal weight.
    std::array<std::map<std::string, DeviceErrors>, 2> errors;
    for (const KindData& programs : train) {
      for (size_t i = 0; i < programs.size(); ++i) {
        const target::Device& device = *data.devices[programs.device[i]];
        const auto key = device.name + "." + std::to_string(static_cast<int>(programs.kind));
        DeviceErrors& list = errors[static_cast<size_t>(device.kind())][key];
        list.device = device.name;
        list.errors.push_back(std::log(programs.seconds[i] / programs.roofline[i]));
      }
    }
    for (size_t kind = 0; kind < errors.size(); ++kind) {
      std::vector<DeviceErrors> lists;
      std::set<std::string> names;
      for (auto& [name, list] : errors[kind]) {
        names.insert(list.device);
        lists.push_back(std::move(list));
      }
      if (lists.empty()) continue;
      std::string source = "the roofline's on ";
      for (const std::string& name : names) source += (name == *names.begin() ? "" : ", ") + name;
      card.new_kind[kind] = held_out_error(lists, true, 1, source);
      card.new_kind[kind].devices = names.size();
    }
    // Smaller models with the same recipe suffice: differences between devices show up in these as
    // well.
    TensorsmithOptions smaller = options_;
    smaller.hold_out = smaller.calibrate = false;
    smaller.known_devices = options_.recipe().base != BaseFormula::kResources;
    smaller.members = std::min(smaller.members, 1);
    smaller.rank_members = std::min(smaller.rank_members, 1);
    TrainingControl quiet = control;
    quiet.checkpoint.clear();
    quiet.progress = nullptr;
    return hold_out_devices(
        data, control.seed,
        [&](const TrainingData& others) {
          return TensorsmithTrainer(smaller, parameters_).train(others, quiet);
        },
        card);
  }

  // Fits all parts but the calibration to the chosen programs. The parts start as copies of those of
  // Run::before, if there is one. validation: the programs that the curves of the training are
  // computed on. fold: number of the fold, from 1; 0 for the model itself.
  Result<DeviceScales> fit_parts(TensorsmithParts& parts, const ChosenPrograms& programs,
                                 const ChosenPrograms& validation, Run& run, int fold = 0) const {
    const ProgramKind kind = programs.data.kind;
    DeviceScales scales;
    if (parts.base.formula == BaseFormula::kResources)
      scales = parts.base.fit(programs, run.data, run.control.seed, run.before != nullptr);
    if (run.before != nullptr) {
      const TensorsmithParts& before = run.before->kinds[kind];
      parts.adaptation.note_shown(before.base, before.adaptation, programs, run.data);
    }
    if (fold == 0 && fits_devices(run.before, kind))
      TS_RETURN_IF_ERROR(fit_devices(parts, programs, validation, run));
    if (options_.members > 0 && options_.known_devices)
      TS_RETURN_IF_ERROR(fit_correction(parts, programs, validation, run, fold));
    return scales;
  }

  PackSumOptions tree_options(ProgramKind kind) const {
    PackSumOptions out = options_.fit;
    // These kinds have fewer programs of simpler structure, which need smaller trees.
    if (kind == ProgramKind::kGpuFlat || kind == ProgramKind::kCpuOther)
      out.max_depth = std::max(1, out.max_depth - 2);
    return out;
  }

  // Further trees learn what the existing ones leave unexplained, separately for the seconds and
  // for the ranking.
  Status fit_correction(TensorsmithParts& parts, const ChosenPrograms& programs,
                        const ChosenPrograms& validation, Run& run, int fold) const {
    TensorsmithCorrection& correction = parts.correction;
    const bool goes_on = !correction.members.empty();
    PackSumOptions fit = tree_options(programs.data.kind);
    if (goes_on) {
      fit.rounds = options_.new_rounds;
      fit.eta *= kFewTasksEta;
    }
    if (fit.rounds == 0) return {};
    TreeRows rows = correction.training_rows(parts.base, programs, run.data);
    TreeRows watched;
    if (run.forests.draws_curves()) watched = correction.training_rows(parts.base, validation, run.data);
    const std::string name =
        std::string(to_string(programs.data.kind)) + (fold > 0 ? "-fold-" + std::to_string(fold) : "");
    const auto add = [&](std::vector<Forest>& list, int wanted, PackSumLoss loss,
                         const char* sort) -> Status {
      const size_t count = fold > 0 ? std::min(wanted, 1) : wanted;
      if (goes_on) list.resize(std::min(list.size(), count));
      fit.loss = loss;
      for (size_t m = 0; m < (goes_on ? list.size() : count); ++m) {
        const std::string member = name + sort + (fold > 0 ? "" : "-" + std::to_string(m + 1));
        TS_ASSIGN_OR_RETURN(Forest forest, run.forests.next(rows.data, watched.data, member, fit));
        if (goes_on) {
          list[m].append(forest);
        } else {
          list.push_back(std::move(forest));
        }
      }
      return {};
    };
    TS_RETURN_IF_ERROR(
        add(correction.members, options_.members, options_.member_loss(), fold > 0 ? "" : "-member"));
    rows.data.labels = std::move(rows.rank_labels);
    watched.data.labels = std::move(watched.rank_labels);
    return add(correction.rank_members, options_.rank_members, PackSumLoss::kHuber, "-rank");
  }

  // Fits, for each device of the chosen programs, a forest to the errors of the factors of all
  // devices.
  Status fit_devices(TensorsmithParts& parts, const ChosenPrograms& programs,
                     const ChosenPrograms& validation, Run& run) const {
    const ProgramKind kind = programs.data.kind;
    PackSumOptions fit = tree_options(kind);
    fit.rounds = kDeviceRounds;
    fit.max_depth = std::min(fit.max_depth, kDeviceDepth);
    fit.loss = options_.member_loss();
    auto unseen = by_device(validation);
    for (const auto& [number, members] : by_device(programs)) {
      const target::Device& device = *run.data.devices[number];
      const auto rows_of = [&](const KindData& data, std::span<const size_t> chosen) {
        return TensorsmithAdaptation::training_rows(parts.base, {data, chosen});
      };
      PackSumData watched;
      if (run.forests.draws_curves()) watched = rows_of(validation.data, unseen[number]);
      TS_ASSIGN_OR_RETURN(Forest forest,
                          run.forests.next(rows_of(programs.data, members), watched,
                                           std::string(to_string(kind)) + "-device-" + device.name, fit));
      parts.adaptation.set({device.name, traits_of(device), std::move(forest)});
    }
    return {};
  }
  // An older model has trees but no forests for devices. Forests fitted only to the devices of the
  // new records would then decide for all unknown devices, so none are fitted.
  bool fits_devices(const TensorsmithModel* before, ProgramKind kind) const {
    if (options_.recipe().base != BaseFormula::kResources || options_.members == 0) return false;
    if (before == nullptr) return true;
    const TensorsmithParts& known = before->kinds[kind];
    return known.correction.members.empty() || !known.adaptation.forests.empty();
  }

  static void add_errors(const TensorsmithParts& parts, const ChosenPrograms& programs,
                         const TrainingData& source, ErrorsByDevice& errors) {
    const KindData& data = programs.data;
    for (const auto& [device, members] : by_device(programs)) {
      std::vector<double> logs(members.size());
      parts.log_seconds(*source.devices[device], data.programs(members), logs);
      for (size_t j = 0; j < members.size(); ++j) {
        PredictionErrors& list = errors[device][data.structure[members[j]]];
        list.errors.push_back(logs[j] - std::log(data.seconds[members[j]]));
        list.workloads.insert(data.workload[members[j]]);
      }
    }
  }

  // Adds errors on programs of workloads that the respective fit has not seen.
  Status add_fold_errors(const KindData& data, int folds, Run& run, ErrorsByDevice& errors) const {
    const std::vector<int> fold_of = fold_numbers(data, folds, run.control.seed);
    for (int fold = 0; fold < folds; ++fold) {
      std::vector<size_t> inside, outside;
      for (size_t i = 0; i < data.size(); ++i) (fold_of[i] == fold ? inside : outside).push_back(i);
      if (inside.empty() || outside.empty()) continue;
      TensorsmithParts parts = first_model(run.before).kinds[data.kind];
      TS_ASSIGN_OR_RETURN(const DeviceScales scales,
                          fit_parts(parts, {data, outside}, {data, inside}, run, fold + 1));
      if (parts.base.formula == BaseFormula::kResources) parts.base.complete(scales, scales, run.data);
      add_errors(parts, {data, inside}, run.data, errors);
    }
    return {};
  }

  static bool share_workloads(const AllData& a, const AllData& b) {
    std::set<uint32_t> seen;
    for (const KindData& kind : a) seen.insert(kind.workload.begin(), kind.workload.end());
    return std::ranges::any_of(b, [&](const KindData& kind) {
      return std::ranges::any_of(kind.workload, [&](uint32_t workload) { return seen.contains(workload); });
    });
  }

  TensorsmithOptions options_;
  Json parameters_;
};

}  // namespace

const CostModelKind& tensorsmith_kind() {
  static const CostModelKind kind = {"tensorsmith",
                                     [](const Json& given) -> Result<std::unique_ptr<CostModelTrainer>> {
                                       TensorsmithOptions options;
                                       TS_ASSIGN_OR_RETURN(Json all, options.read(given));
                                       return std::unique_ptr<CostModelTrainer>(
                                           std::make_unique<TensorsmithTrainer>(options, std::move(all)));
                                     },
                                     nullptr, TensorsmithModel::from_file};
  return kind;
}

}  // namespace tensorsmith::learn
