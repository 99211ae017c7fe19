#include "learn/latency/roofline.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "base/statistics.h"
#include "learn/latency/evaluation.h"
#include "learn/latency/held_out.h"
#include "learn/latency/kinds.h"
#include "learn/latency/parameters.h"
#include "learn/latency/queries.h"
#include "target/machine.h"

namespace tensorsmith::learn {

namespace {

using feature::PerStoreRow;

// Undoes the rounding of a number of iterations to float; returns at least 1.
double count(double iterations) { return std::max(std::round(iterations), 1.0); }

double utilization(const PerStoreRow& leaf, const target::CpuMachine& cpu) {
  const double chunks = count(leaf.quantity("parallel_prod"));
  const double busy = chunks / (std::ceil(chunks / cpu.cores) * cpu.cores);
  const double used = leaf["vec_num"] > 0 ? count(leaf.quantity("vec_len")) : 1.0;
  return busy * std::clamp(used / cpu.lanes(), 1 / cpu.lanes(), 1.0);
}

double utilization(const PerStoreRow& leaf, const target::GpuMachine& gpu) {
  const double blocks = count(leaf.quantity("blockIdx_x_len")) * count(leaf.quantity("blockIdx_y_len")) *
                        count(leaf.quantity("blockIdx_z_len"));
  const double threads = count(leaf.quantity("threadIdx_x_len")) * count(leaf.quantity("threadIdx_y_len")) *
                         count(leaf.quantity("threadIdx_z_len"));
  const double warp = gpu.warp, issued = std::ceil(threads / warp) * warp;
  // If fewer blocks exist than would fit, they are spread over the multiprocessors.
  const double resident = std::min(gpu.resident_blocks(issued), std::max(std::ceil(blocks / gpu.cores), 1.0));
  const double wave = gpu.cores * resident;
  const double busy = blocks / (std::ceil(blocks / wave) * wave);
  const double filled = std::min(1.0, resident * issued / gpu.lanes);
  return busy * (threads / issued) * filled;
}

double launch_seconds(const target::CpuMachine&) { return 0; }
double launch_seconds(const target::GpuMachine& gpu) { return gpu.launch_seconds; }

template <class AnyMachine>
double leaf_seconds(const feature::LeafFeatures& leaves, const AnyMachine& machine) {
  double seconds = 0;
  for (int r = 0; r < leaves.vectors.rows; ++r) {
    const PerStoreRow leaf(leaves.vectors.row(r));
    double bytes = 0;
    for (size_t b = 0; b < feature::kRowBuffers; ++b) bytes += leaf.buffer(b).quantity("unique_bytes");
    const auto of_floats = leaf.group<feature::kOperationFields>(feature::kFloatGroup);
    double operations = 0;
    for (size_t i = 0; i < feature::kOperationFields.size(); ++i) operations += of_floats.quantity_at(i);
    seconds += std::max(operations / (machine.flops_per_second * utilization(leaf, machine)),
                        bytes / machine.bytes_per_second);
  }
  return seconds;
}

}  // namespace

double roofline_seconds(const feature::LeafFeatures& leaves, const target::Device& device) {
  const double seconds =
      std::visit([&](const auto& machine) { return launch_seconds(machine) + leaf_seconds(leaves, machine); },
                 target::machine_of(device));
  // Keeps the result positive, since its logarithm is taken; the bound is below the resolution of
  // any clock.
  return std::max(seconds, 1e-9);
}

namespace {

// Correction of the estimate, fitted to measurements on one kind of device.
struct RooflineScale {
  double log_scale = 0;  // median of log(measured / estimate)
  double log_sigma = 0;  // 0.6827-quantile of the distance from that median
};

class RooflineModel final : public CostModel {
 public:
  RooflineModel(ModelCard card, const std::array<RooflineScale, 2>& scales)
      : card_(std::move(card)), scales_(scales) {}

  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override {
    std::vector<Prediction> out;
    out.reserve(queries.size());
    UnseenEffects unseen(card_);
    for (const ProgramQuery& query : queries) {
      const RooflineScale& c = scales_[static_cast<size_t>(query.device->kind())];
      out.push_back({std::exp(c.log_scale) * roofline_seconds(*query.leaves, *query.device), c.log_sigma});
      unseen.apply(*query.device, out.back());
    }
    return out;
  }
  const ModelCard& card() const override { return card_; }
  Status save(const std::string& path) const override {
    ModelFile file;
    file.card = card_;
    const double log_scales[] = {scales_[0].log_scale, scales_[1].log_scale};
    const double sigmas[] = {scales_[0].log_sigma, scales_[1].log_sigma};
    file.add<double>("log_scale", {2}, log_scales);
    file.add<double>("log_sigma", {2}, sigmas);
    return write_model_file(file, path);
  }
  const std::array<RooflineScale, 2>& scales() const { return scales_; }

 private:
  ModelCard card_;
  std::array<RooflineScale, 2> scales_;  // indexed by target::DeviceKind
};

// Fits the scales. base: the model that training continues from, may be nullptr.
Result<std::unique_ptr<CostModel>> fit_roofline(const RooflineModel* base, const TrainingData& data,
                                                const TrainingControl& control, bool hold_out = true) {
  std::array<RooflineScale, 2> scales{};
  if (base != nullptr) scales = base->scales();
  std::array<std::vector<double>, 2> errors;
  feature::LeafFeatures leaves;
  for (const int64_t i : data.train) {
    const Store::Entry entry = data.store->entry(i);
    if (entry.failed() || entry.leaves == 0) continue;
    data.store->leaves(i, leaves);
    const target::Device& device = *data.devices[entry.device];
    errors[static_cast<size_t>(device.kind())].push_back(
        std::log(entry.mean_seconds / roofline_seconds(leaves, device)));
  }
  for (size_t kind = 0; kind < errors.size(); ++kind) {
    std::vector<double>& e = errors[kind];
    if (e.empty()) continue;
    const double middle = quantile(e, 0.5);
    for (double& x : e) x = std::abs(x - middle);
    scales[kind] = {middle, quantile(e, 0.6827)};
  }
  ModelCard card = make_card("roofline", data, control, nlohmann::json::object(),
                             base != nullptr ? &base->card() : nullptr);
  if (hold_out) {
    TS_RETURN_IF_ERROR(hold_out_devices(
        data, control.seed,
        [&](const TrainingData& others) { return fit_roofline(nullptr, others, control, false); }, card));
  }
  TS_ASSIGN_OR_RETURN(card.metrics, validation_metrics(RooflineModel(card, scales), data));
  return std::unique_ptr<CostModel>(std::make_unique<RooflineModel>(std::move(card), scales));
}

class RooflineTrainer final : public CostModelTrainer {
 public:
  Result<std::unique_ptr<CostModel>> train(const TrainingData& data,
                                           const TrainingControl& control) const override {
    return fit_roofline(nullptr, data, control);
  }
  Result<std::unique_ptr<CostModel>> fine_tune(const CostModel& model, const TrainingData& data,
                                               const TrainingControl& control) const override {
    const auto* roofline = dynamic_cast<const RooflineModel*>(&model);
    if (roofline == nullptr)
      return Error{ErrorCode::kInvalidArgument, "", "the model to fine-tune has a different kind"};
    return fit_roofline(roofline, data, control);
  }
};

Result<std::unique_ptr<CostModel>> roofline_from_file(ModelFile file) {
  TS_ASSIGN_OR_RETURN(const std::vector<double> log_scales, file.values<double>("log_scale", {2}));
  TS_ASSIGN_OR_RETURN(const std::vector<double> sigmas, file.values<double>("log_sigma", {2}));
  for (size_t i = 0; i < 2; ++i) {
    if (!(std::abs(log_scales[i]) < 100) || !(sigmas[i] >= 0 && sigmas[i] < 100))
      return Error{ErrorCode::kCorrupt, "", "the calibration is out of range"};
  }
  const std::array<RooflineScale, 2> scales = {RooflineScale{log_scales[0], sigmas[0]},
                                               RooflineScale{log_scales[1], sigmas[1]}};
  return std::unique_ptr<CostModel>(std::make_unique<RooflineModel>(std::move(file.card), scales));
}

}  // namespace

const CostModelKind& roofline_kind() {
  static const CostModelKind kind = {
      "roofline",
      [](const nlohmann::json& given) -> Result<std::unique_ptr<CostModelTrainer>> {
        TS_ASSIGN_OR_RETURN(const nlohmann::json none, Parameters(given).finish());
        return std::unique_ptr<CostModelTrainer>(std::make_unique<RooflineTrainer>());
      },
      [](const UntrainedOptions& options) -> std::unique_ptr<CostModel> {
        return std::make_unique<RooflineModel>(untrained_card("roofline", options.seed),
                                               std::array<RooflineScale, 2>());
      },
      roofline_from_file};
  return kind;
}

}  // namespace tensorsmith::learn
