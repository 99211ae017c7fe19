// Training of Tensorsmith's own latency model (learn/latency/tensorsmith_model.h).
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/statistics.h"
#include "learn/latency/evaluation.h"
#include "learn/latency/held_out.h"
#include "learn/latency/parameters.h"
#include "learn/latency/tensorsmith_data.h"
#include "learn/latency/tensorsmith_rows.h"

namespace tensorsmith::learn {

namespace {

using feature::ProgramKind;
using Json = nlohmann::json;

// Least numbers of records and workloads for a structure to have its own shift and deviation, which
// would be noise with fewer. Otherwise it uses those of all programs of the kind on the device.
constexpr size_t kLeastCalibrationRecords = 30;
constexpr size_t kLeastCalibrationTasks = 3;
// When training continues, a structure with n workloads gets n / (n + kShiftTasks) of its shift.
// The fits for the folds leave out some of few workloads and know the device less well than the
// model does, so part of their common error is not the model's.
constexpr double kShiftTasks = 4;
// A value further than this factor from the median is treated as a disturbed measurement, or as an
// error that no factor can correct.
constexpr double kOutlier = 2;
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

// Returns -log of the mean of measured / predicted, with outliers clamped to kOutlier around the
// median. errors: log(predicted / measured), not empty.
double mean_shift(std::span<const double> errors) {
  const double center = std::exp(-median({errors.begin(), errors.end()}));
  double sum = 0;
  for (const double e : errors) sum += std::clamp(std::exp(-e), center / kOutlier, center * kOutlier);
  return -std::log(sum / static_cast<double>(errors.size()));
}

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
    if (before == nullptr || before->base != options_.base_kind() ||
        before->device_columns != options_.device_columns)
      return Error{ErrorCode::kInvalidArgument, "",
                   "the model to fine-tune differs in kind, base or columns"};
    return fit(before, data, control);
  }

 private:
  // State of a training. A step is the fit of one forest.
  struct Run {
    const TrainingData& data;
    const TrainingControl& control;
    int steps = 0, done = 0;
    std::string hash;
    std::vector<Forest::Arrays> forests;  // one per finished step, as in the checkpoint
    std::vector<int> widths;

    bool draws_curves() const { return control.progress && control.validation_curves; }
  };

  Result<std::unique_ptr<CostModel>> fit(const TensorsmithModel* before, const TrainingData& data,
                                         const TrainingControl& control) const {
    TS_ASSIGN_OR_RETURN(const AllData train, gather_summaries(data, data.train));
    TS_ASSIGN_OR_RETURN(const AllData validation, gather_summaries(data, data.validation));
    Run run{data, control, 0, 0, training_hash("tensorsmith", data, control, parameters_, before), {}, {}};
    if (std::all_of(train.begin(), train.end(), [](const KindData& k) { return k.size() == 0; }))
      return Error{ErrorCode::kInvalidArgument, "", "no measured programs to train on"};
    // The calibration should show the error on workloads that the model has not seen. If the
    // validation part has other workloads, it shows this, but it has few of them; so
    // cross-validation over the workloads of the training part is used as well. If both parts share
    // their workloads, as the programs to come will, only the validation part is used. A model that
    // continues from another is meant for workloads that it was not trained on, so the folds are
    // used and a validation part that shares workloads is not.
    const bool shared = share_workloads(train, validation);
    const bool strict = before != nullptr || !shared;
    const int calibration_folds = options_.calibrate && strict ? options_.folds : 0;
    const int forests =
        options_.members > 0 && options_.known_devices ? options_.members + options_.rank_members : 0;
    const int fold_forests = options_.members > 0 ? 1 + std::min(options_.rank_members, 1) : 0;
    for (size_t k = 0; k < train.size(); ++k) {
      if (train[k].size() == 0) continue;
      run.steps += forests + calibration_folds * fold_forests;
      if (speaks_for_new_devices(before, static_cast<ProgramKind>(k))) run.steps += device_forests(train[k]);
    }
    TS_RETURN_IF_ERROR(read_checkpoint(run));

    auto model = std::make_unique<TensorsmithModel>();
    if (before != nullptr) *model = *before;
    model->base = options_.base_kind();
    model->device_columns = options_.device_columns;
    model->rank_weight = options_.rank_weight;
    std::array<DeviceScales, feature::kProgramKinds> scales;
    for (int k = 0; k < feature::kProgramKinds; ++k) {
      const auto kind = static_cast<ProgramKind>(k);
      const KindData& programs = train[static_cast<size_t>(k)];
      if (programs.size() == 0) continue;
      std::vector<size_t> all(programs.size());
      std::iota(all.begin(), all.end(), size_t{0});
      for (const size_t i : all) {
        const double flops = data.store->workloads()[programs.workload[i]].flops;
        const auto structure = static_cast<feature::WorkloadStructure>(programs.structure[i]);
        auto& [low, high] = model->sizes.try_emplace({kind, structure}, flops, flops).first->second;
        low = std::min(low, flops);
        high = std::max(high, flops);
      }
      const KindData& unseen = validation[static_cast<size_t>(k)];
      std::vector<size_t> all_unseen(unseen.size());
      std::iota(all_unseen.begin(), all_unseen.end(), size_t{0});
      TS_ASSIGN_OR_RETURN(scales[static_cast<size_t>(k)],
                          fit_kind(*model, before, kind, programs, all, {unseen, all_unseen}, run));
      if (!options_.calibrate) continue;
      Errors errors;
      if (!strict || !shared) add_errors(*model, kind, unseen, all_unseen, data, errors);
      if (calibration_folds > 0)
        TS_RETURN_IF_ERROR(add_fold_errors(before, kind, programs, calibration_folds, run, errors));
      calibrate(*model, kind, errors, data, strict ? kLeastCalibrationTasks : 1,
                before != nullptr ? kShiftTasks : 0);
    }
    if (model->base == TensorsmithBase::kResources) complete_resources(*model, scales, data);
    model->model_card =
        make_card("tensorsmith", data, control, parameters_, before != nullptr ? &before->card() : nullptr);
    if (options_.hold_out) TS_RETURN_IF_ERROR(hold_out(train, data, control, model->model_card));
    TS_ASSIGN_OR_RETURN(model->model_card.metrics, validation_metrics(*model, data));
    return std::unique_ptr<CostModel>(std::move(model));
  }

  // Measures the errors on devices and for kinds of programs that the model has not seen. For the
  // latter it is the error of the roofline, which is used for them.
  Status hold_out(const AllData& train, const TrainingData& data, const TrainingControl& control,
                  ModelCard& card) const {
    // Keyed so that each program kind of a device has equal weight.
    std::array<std::map<std::string, DeviceErrors>, 2> errors;
    for (int k = 0; k < feature::kProgramKinds; ++k) {
      const KindData& programs = train[static_cast<size_t>(k)];
      for (size_t i = 0; i < programs.size(); ++i) {
        const target::Device& device = *data.devices[programs.device[i]];
        DeviceErrors& list = errors[static_cast<size_t>(device.kind)][device.name + "." + std::to_string(k)];
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
      card.new_kind[kind].devices = static_cast<int>(names.size());
    }
    // Smaller models with the same recipe suffice: differences between devices show up in these as
    // well.
    TensorsmithOptions smaller = options_;
    smaller.hold_out = smaller.calibrate = false;
    smaller.known_devices = options_.base_kind() != TensorsmithBase::kResources;
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

  // Fits factors and trees of one kind to the chosen programs. The model starts as a copy of
  // `before`, if there is one. validation: the programs that the curves of the training are
  // computed on. fold: number of the fold, from 1; 0 for the model itself.
  Result<DeviceScales> fit_kind(TensorsmithModel& model, const TensorsmithModel* before, ProgramKind kind,
                                const KindData& data, std::span<const size_t> chosen,
                                const ChosenPrograms& validation, Run& run, int fold = 0) const {
    DeviceScales scales;
    if (options_.base_kind() == TensorsmithBase::kResources)
      scales = fit_resources(model, kind, data, chosen, run.data, run.control.seed, before != nullptr);
    TensorsmithKind& forests = model.kinds[static_cast<size_t>(kind)];
    if (before != nullptr) note_shown(model, *before, kind, data, chosen, run.data);
    const bool goes_on = !forests.members.empty();
    const int rounds = goes_on ? options_.new_rounds : options_.fit.rounds;
    const auto wanted = [&](int members) {
      return static_cast<size_t>(fold > 0 ? std::min(members, 1) : members);
    };
    if (fold == 0 && speaks_for_new_devices(before, kind))
      TS_RETURN_IF_ERROR(fit_devices(model, kind, data, chosen, validation, run));
    if (options_.members == 0 || rounds == 0 || !options_.known_devices) return scales;

    // Further trees learn what the existing ones leave unexplained, separately for the seconds and
    // for the ranking.
    TreeRows rows = tree_rows(model, kind, {data, chosen}, run.data);
    TreeRows watched;
    if (run.draws_curves()) watched = tree_rows(model, kind, validation, run.data);
    const PackSumLoss loss = options_.loss == "relative" ? PackSumLoss::kRelative : PackSumLoss::kSquared;
    const std::string name =
        std::string(to_string(kind)) + (fold > 0 ? "-fold-" + std::to_string(fold) : std::string());
    const auto add = [&](std::vector<Forest>& list, size_t count, PackSumLoss of,
                         const char* role) -> Status {
      if (goes_on) list.resize(std::min(list.size(), count));
      for (size_t m = 0; m < (goes_on ? list.size() : count); ++m) {
        const std::string member = name + role + (fold > 0 ? "" : "-" + std::to_string(m + 1));
        TS_ASSIGN_OR_RETURN(Forest forest,
                            next_forest(rows.data, watched.data, member, kind, of, rounds, run, goes_on));
        if (goes_on) {
          list[m].append(forest);
        } else {
          list.push_back(std::move(forest));
        }
      }
      return {};
    };
    TS_RETURN_IF_ERROR(add(forests.members, wanted(options_.members), loss, fold > 0 ? "" : "-member"));
    rows.data.labels = std::move(rows.rank_labels);
    watched.data.labels = std::move(watched.rank_labels);
    TS_RETURN_IF_ERROR(
        add(forests.rank_members, wanted(options_.rank_members), PackSumLoss::kHuber, "-rank"));
    return scales;
  }

  // Records in ShownTasks the data of devices that the model `before` did not know.
  static void note_shown(TensorsmithModel& model, const TensorsmithModel& before, ProgramKind kind,
                         const KindData& data, std::span<const size_t> chosen, const TrainingData& source) {
    // By (device, structure), then by workload.
    std::map<std::pair<uint32_t, uint8_t>, std::map<uint32_t, std::vector<size_t>>> tasks;
    for (const size_t i : chosen) tasks[{data.device[i], data.structure[i]}][data.workload[i]].push_back(i);
    for (const auto& [key, workloads] : tasks) {
      const target::Device& device = *source.devices[key.first];
      auto& shown = model.kinds[static_cast<size_t>(kind)].shown;
      if (!before.is_new_device(kind, device.name) && shown.count(device.name) == 0) continue;
      double sum = 0;
      for (const auto& [workload, members] : workloads) {
        std::vector<SummarizedProgram> programs;
        for (const size_t i : members) programs.push_back(data.program(kind, i));
        std::vector<double> logs(members.size());
        before.common_log_seconds(kind, device, programs, logs);
        for (size_t j = 0; j < members.size(); ++j) logs[j] = std::log(data.seconds[members[j]]) - logs[j];
        sum += median(std::move(logs));
      }
      // Shrinkage: with a single workload, half of its error is taken as common to all workloads.
      const auto n = static_cast<double>(workloads.size());
      ShownTasks& now = shown[device.name][static_cast<feature::WorkloadStructure>(key.second)];
      const double earlier = now.workloads;
      const double lacking = (now.shift * (earlier + 1) + sum) / (earlier + n + 1);
      now = {static_cast<int>(earlier + n), lacking};
    }
  }

  // Fits, for each device of the chosen programs, a forest to the errors of the factors of all
  // devices.
  Status fit_devices(TensorsmithModel& model, ProgramKind kind, const KindData& data,
                     std::span<const size_t> chosen, const ChosenPrograms& validation, Run& run) const {
    if (device_forests(data) == 0) return {};
    std::map<uint32_t, std::vector<size_t>> by_device;
    for (const size_t i : chosen) by_device[data.device[i]].push_back(i);
    std::vector<DeviceForest>& known = model.kinds[static_cast<size_t>(kind)].devices;
    for (const auto& [number, members] : by_device) {
      const target::Device& device = *run.data.devices[number];
      const PackSumData rows = device_tree_rows(model, kind, {data, members});
      PackSumData watched;
      if (run.draws_curves()) {
        std::vector<size_t> own;
        for (const size_t i : validation.chosen)
          if (validation.data.device[i] == number) own.push_back(i);
        watched = device_tree_rows(model, kind, {validation.data, own});
      }
      const PackSumLoss loss = options_.loss == "relative" ? PackSumLoss::kRelative : PackSumLoss::kSquared;
      TS_ASSIGN_OR_RETURN(Forest forest,
                          next_forest(rows, watched, std::string(to_string(kind)) + "-device-" + device.name,
                                      kind, loss, kDeviceRounds, run, false, kDeviceDepth));
      std::erase_if(known, [&](const DeviceForest& other) { return other.device == device.name; });
      known.push_back({device.name, traits_of(device), std::move(forest)});
    }
    return {};
  }
  // An older model has trees but no forests for devices. Forests fitted only to the devices of the
  // new records would then decide for all unknown devices, so none are fitted.
  static bool speaks_for_new_devices(const TensorsmithModel* before, ProgramKind kind) {
    if (before == nullptr) return true;
    const TensorsmithKind& known = before->kinds[static_cast<size_t>(kind)];
    return known.members.empty() || !known.devices.empty();
  }
  int device_forests(const KindData& data) const {
    if (options_.base_kind() != TensorsmithBase::kResources || options_.members == 0) return 0;
    return static_cast<int>(std::set<uint32_t>(data.device.begin(), data.device.end()).size());
  }

  // Returns the next forest of the run: from the checkpoint, or newly fitted. watched: programs
  // that are not trained on, for the validation curve of `member`. depth: upper limit of the trees'
  // depth.
  Result<Forest> next_forest(const PackSumData& rows, const PackSumData& watched, const std::string& member,
                             ProgramKind kind, PackSumLoss minimized, int rounds, Run& run, bool goes_on,
                             int depth = 100) const {
    const auto at = static_cast<size_t>(run.done++);
    if (at < run.forests.size()) return Forest::from_arrays(run.forests[at], rows.width);
    PackSumOptions fit = options_.fit;
    fit.rounds = rounds;
    // These kinds have fewer programs of simpler structure, which need smaller trees.
    if (kind == ProgramKind::kGpuFlat || kind == ProgramKind::kCpuOther)
      fit.max_depth = std::max(1, fit.max_depth - 2);
    fit.max_depth = std::min(fit.max_depth, depth);
    if (goes_on) fit.eta *= kFewTasksEta;
    fit.loss = minimized;
    fit.threads = run.control.threads;
    fit.seed = run.control.seed + at;
    fit.stop = run.control.stop;
    if (run.control.progress) {
      fit.progress = [&run, &member, at, rounds](int round, double loss, double validation_loss) {
        TrainingProgress progress;
        progress.step = static_cast<int>(at) * rounds + round;
        progress.steps = run.steps * rounds;
        progress.train_loss = loss;
        progress.validation_loss = validation_loss;
        progress.member = member;
        progress.member_step = round;
        run.control.progress(progress);
      };
    }
    fit.validation_chooses = false;
    TS_ASSIGN_OR_RETURN(PackSumFit fitted, fit_pack_sum(rows, watched, fit));
    run.forests.push_back(fitted.forest.to_arrays());
    run.widths.push_back(rows.width);
    TS_RETURN_IF_ERROR(write_checkpoint(run));
    return std::move(fitted.forest);
  }

  // log(predicted / measured) without the shift, and the numbers of the workloads.
  struct ErrorList {
    std::vector<double> errors;
    std::set<uint32_t> workloads;
  };
  using Errors = std::map<uint32_t, std::map<uint8_t, ErrorList>>;

  static void add_errors(const TensorsmithModel& model, ProgramKind kind, const KindData& data,
                         std::span<const size_t> chosen, const TrainingData& source, Errors& errors) {
    std::map<uint32_t, std::vector<size_t>> by_device;
    for (const size_t i : chosen) by_device[data.device[i]].push_back(i);
    for (const auto& [device, members] : by_device) {
      std::vector<SummarizedProgram> programs;
      for (const size_t i : members) programs.push_back(data.program(kind, i));
      std::vector<double> logs(members.size());
      model.log_seconds(kind, *source.devices[device], programs, logs);
      for (size_t j = 0; j < members.size(); ++j) {
        ErrorList& list = errors[device][data.structure[members[j]]];
        list.errors.push_back(logs[j] - std::log(data.seconds[members[j]]));
        list.workloads.insert(data.workload[members[j]]);
      }
    }
  }

  // Adds errors on programs of workloads that the respective fit has not seen.
  Status add_fold_errors(const TensorsmithModel* before, ProgramKind kind, const KindData& data, int folds,
                         Run& run, Errors& errors) const {
    const std::vector<int> fold_of = fold_numbers(data, folds, run.control.seed);
    for (int fold = 0; fold < folds; ++fold) {
      std::vector<size_t> inside, outside;
      for (size_t i = 0; i < data.size(); ++i) (fold_of[i] == fold ? inside : outside).push_back(i);
      if (inside.empty() || outside.empty()) continue;
      TensorsmithModel other;
      if (before != nullptr) other = *before;
      other.base = options_.base_kind();
      other.device_columns = options_.device_columns;
      other.rank_weight = options_.rank_weight;
      TS_ASSIGN_OR_RETURN(const DeviceScales scales,
                          fit_kind(other, before, kind, data, outside, {data, inside}, run, fold + 1));
      std::array<DeviceScales, feature::kProgramKinds> all_scales;
      all_scales[static_cast<size_t>(kind)] = scales;
      if (other.base == TensorsmithBase::kResources) complete_resources(other, all_scales, run.data);
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

  static void calibrate(TensorsmithModel& model, ProgramKind kind, Errors& errors, const TrainingData& source,
                        size_t least_tasks, double shift_tasks) {
    for (auto& [device, by_structure] : errors) {
      ErrorList whole;
      for (const auto& [structure, list] : by_structure)
        whole.errors.insert(whole.errors.end(), list.errors.begin(), list.errors.end());
      for (auto& [structure, list] : by_structure) {
        const bool enough =
            list.errors.size() >= kLeastCalibrationRecords && list.workloads.size() >= least_tasks;
        if (!enough && whole.errors.size() < kLeastCalibrationRecords) continue;
        const auto n = static_cast<double>(list.workloads.size());
        model.calibrations[{kind, static_cast<feature::WorkloadStructure>(structure),
                            source.devices[device]->name}] =
            calibration(enough ? list.errors : whole.errors, n / (n + shift_tasks));
      }
    }
  }

  // Returns the shift with the lowest mean percentage error, the shift that makes the mean correct,
  // and the half widths that cover the shares of errors in Prediction. Both shifts are multiplied
  // by `share`.
  static Calibration calibration(std::vector<double> errors, double share) {
    Calibration best;
    double lowest = INFINITY;
    for (int step = -10; step <= 20; ++step) {
      const double shift = 0.02 * step;
      double sum = 0;
      for (const double e : errors) sum += std::abs(std::expm1(e - shift));
      if (sum < lowest) {
        lowest = sum;
        best.shift = shift;
      }
    }
    best.shift *= share;
    best.mean_shift = share * mean_shift(errors);
    for (double& e : errors) e = std::abs(e - best.shift);
    std::sort(errors.begin(), errors.end());
    const auto at = [&](double q) {
      return errors[static_cast<size_t>(q * static_cast<double>(errors.size()))];
    };
    best.log_sigma = at(0.6827);
    best.log_90 = at(0.90);
    best.log_95 = at(0.9545);
    return best;
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
    if (run.control.owns_checkpoint) run.control.owns_checkpoint();
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
