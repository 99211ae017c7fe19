// Tensorsmith's own network: estimates a program as a sum over the resources that it keeps busy
// (feature/program_summary.h) with learned utilizations, corrected by a network. seconds = roofline
// x sum over resources of (share x factor) x exp(network). The logarithm of a factor is a value for
// the structure of computation plus a value for the device; for a device outside the training data,
// the latter is 0. Sum and network are trained together.
#include <torch/nn/functional.h>

#include "learn/net/net_kind.h"

namespace tensorsmith::learn::net {

namespace {

using feature::kProgramKinds;
using feature::kWorkloadStructures;
using feature::ProgramKind;

// Initial logarithm of the factors: a program that keeps several resources busy takes about half of
// their sum.
constexpr double kFirstFactor = -0.7;

// x + f(norm(x)), where f is a layer of twice the width followed by one back to the width.
class ResidualLayerImpl : public torch::nn::Module {
 public:
  explicit ResidualLayerImpl(int64_t width) {
    norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    up_ = register_module("up", torch::nn::Linear(width, 2 * width));
    down_ = register_module("down", torch::nn::Linear(2 * width, width));
  }
  Tensor forward(const Tensor& x) { return x + down_(torch::gelu(up_(norm_(x)))); }

 private:
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear up_{nullptr}, down_{nullptr};
};
TORCH_MODULE(ResidualLayer);

struct ResourceNetSizes {
  int width = 128, layers = 2;
  bool physics = true;  // false: only the network, relative to the roofline
};

// The network for one kind of program.
class KindNetImpl : public torch::nn::Module {
 public:
  KindNetImpl(ProgramKind kind, const ResourceNetSizes& sizes, int64_t devices)
      : resources_(resource_count(kind)), physics_(sizes.physics) {
    const int64_t width = sizes.width, columns = summary_width(kind);
    scaler_ = register_module("scaler", Scaler(columns));
    factors_ = register_parameter("factors", torch::full({kWorkloadStructures, resources_}, kFirstFactor));
    of_device_ = register_parameter("of_device", torch::zeros({devices, resources_}));
    // Inputs: columns, resources as shares of the sum, the sum, structure and device.
    first_ = register_module(
        "first", torch::nn::Linear(columns + resources_ + 1 + kWorkloadStructures + kDeviceColumns, width));
    layers_ = register_module("layers", torch::nn::ModuleList());
    for (int l = 0; l < sizes.layers; ++l) layers_->push_back(ResidualLayer(width));
    norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    out_ = register_module("out", torch::nn::Linear(width, 1));
  }

  // Returns log(seconds / roofline) and the input of the last layer. device: [n] int64, -1: not
  // known.
  std::pair<Tensor, Tensor> forward(const SummaryInput& input, const Tensor& device,
                                    const Tensor& device_features) {
    const Tensor resources = input.values.slice(1, 0, resources_);
    Tensor sum = torch::zeros({input.values.size(0), 1}, input.values.options());
    if (physics_) {
      const Tensor known = (device >= 0).to(torch::kFloat32).unsqueeze(1);
      const Tensor factors =
          factors_.index_select(0, input.structure) + known * of_device_.index_select(0, device.clamp_min(0));
      sum = torch::logsumexp(resources + factors, 1, /*keepdim=*/true);
    }
    const Tensor shares = (resources - sum).clamp(kLeastResource / 2, -kLeastResource / 2) / 4;
    const Tensor structure =
        torch::nn::functional::one_hot(input.structure, kWorkloadStructures).to(torch::kFloat32);
    Tensor x = first_(torch::cat({scaler_(input.values), shares, sum, structure, device_features}, 1));
    for (const auto& layer : *layers_) x = layer->as<ResidualLayerImpl>()->forward(x);
    x = norm_(x);
    return {(sum + out_(x)).squeeze(1), x};
  }

  void set_scaling(const ColumnScaling& scaling) { scaler_->set(scaling); }
  void set_devices(const std::vector<int64_t>& from) {
    const torch::NoGradGuard no_gradients;
    const Tensor before = of_device_.clone();
    of_device_.set_data(before.index_select(0, torch::tensor(from, torch::kInt64).to(before.device())));
  }

 private:
  int64_t resources_;
  bool physics_;
  Scaler scaler_{nullptr};
  Tensor factors_, of_device_;
  torch::nn::Linear first_{nullptr}, out_{nullptr};
  torch::nn::ModuleList layers_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(KindNet);

class ResourceNet final : public Net {
 public:
  ResourceNet(const ResourceNetSizes& sizes, int64_t devices) : width_(sizes.width) {
    for (int k = 0; k < kProgramKinds; ++k) {
      const auto kind = static_cast<ProgramKind>(k);
      kinds_.push_back(register_module(std::string(to_string(kind)), KindNet(kind, sizes, devices)));
    }
  }

  NetOutput forward(const NetInput& input) override {
    std::vector<Tensor> places, values, hidden;
    for (size_t k = 0; k < kinds_.size(); ++k) {
      const SummaryInput& rows = input.summaries[k];
      if (rows.places.size(0) == 0) continue;
      const auto [value, last] = kinds_[k]->forward(rows, input.device.index_select(0, rows.places),
                                                    input.device_features.index_select(0, rows.places));
      places.push_back(rows.places);
      values.push_back(value);
      hidden.push_back(last);
    }
    if (places.empty()) return {torch::zeros({0}), torch::zeros({0, width_})};
    // Restores the order of the batch; each program belongs to one kind.
    const Tensor order = torch::cat(places).argsort();
    return {torch::cat(values).index_select(0, order), torch::cat(hidden).index_select(0, order)};
  }

  void set_scaling(const InputScaling& scaling) override {
    for (size_t k = 0; k < kinds_.size(); ++k) kinds_[k]->set_scaling(scaling.summaries[k]);
  }
  void set_devices(const std::vector<int64_t>& from) override {
    for (auto& kind : kinds_) kind->set_devices(from);
  }

 private:
  int64_t width_;
  std::vector<KindNet> kinds_;
};

}  // namespace

Result<NetDesign> resource_net_design(const nlohmann::json& given, nlohmann::json& values) {
  Parameters p(given);
  NetDesign out;
  ResourceNetSizes sizes;
  out.training.learning_rate = 2e-3;
  out.training.weight_decay = 1e-2;
  out.training.clip = 1;
  out.training.loss.loss = "mape";
  p.integer("width", sizes.width, 1, 4096);
  p.integer("layers", sizes.layers, 0, 64);
  p.flag("physics", sizes.physics);
  p.choice("loss", out.training.loss.loss, {"mape", "rmse", "mse", "lambdarank"});
  out.training.read(p);
  TS_ASSIGN_OR_RETURN(values, p.finish());
  out.batch.rows = RowKind::kNone;
  out.batch.summaries = true;
  out.scaling = ScalingKind::kStandard;
  out.transform = "none";  // log seconds relative to the roofline, like the sum of the resources
  out.make_net = [=](int64_t devices) -> std::shared_ptr<Net> {
    return std::make_shared<ResourceNet>(sizes, devices);
  };
  return out;
}

}  // namespace tensorsmith::learn::net
