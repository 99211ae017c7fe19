// TenSet's MLP (Zheng et al., NeurIPS 2021, section 4): two layers for each row of a program, then
// two residual layers for the sum over the rows. In addition to the original, it may read the
// device's figures, so that one network serves several devices.
#include "learn/net/net_kind.h"

namespace tensorsmith::learn::net {

namespace {

class Mlp final : public Net {
 public:
  Mlp(int64_t width, bool device_features) : reads_device_(device_features) {
    rows_ = register_module("rows", Scaler(feature::kPerStoreWidth));
    encoder_ = register_module("encoder", make_mlp({feature::kPerStoreWidth, width, width}, true));
    if (device_features) device_ = register_module("device", torch::nn::Linear(kDeviceColumns, width));
    first_ = register_module("first", torch::nn::Linear(width, width));
    second_ = register_module("second", torch::nn::Linear(width, width));
    out_ = register_module("out", torch::nn::Linear(width, 1));
  }

  NetOutput forward(const NetInput& input) override {
    Tensor x = sum_by_program(encoder_->forward(rows_(input.row_values)), input.rows);
    if (reads_device_) x = x + device_(input.device_features);
    x = torch::relu(first_(x)) + x;
    x = torch::relu(second_(x)) + x;
    return {out_(x).squeeze(1), x};
  }

  void set_scaling(const InputScaling& scaling) override { rows_->set(scaling.rows); }

 private:
  bool reads_device_;
  Scaler rows_{nullptr};
  torch::nn::Sequential encoder_{nullptr};
  torch::nn::Linear device_{nullptr}, first_{nullptr}, second_{nullptr}, out_{nullptr};
};

}  // namespace

Result<NetDesign> mlp_design(const nlohmann::json& given, nlohmann::json& values) {
  Parameters p(given);
  NetDesign out;
  int width = 128;  // TenSet: 256
  bool device_features = true;
  std::string base = "none", scaling = "max";
  out.training.learning_rate = 2e-3;  // TenSet: 7e-4
  p.integer("width", width, 1, 4096);
  p.flag("device_features", device_features);
  p.choice("base", base, {"none", "flops", "roofline"});
  p.choice("scaling", scaling, {"max", "standard"});
  p.choice("loss", out.training.loss.loss, {"rmse", "mse", "mape", "lambdarank"});
  out.training.read(p);
  TS_ASSIGN_OR_RETURN(values, p.finish());
  out.batch.rows = RowKind::kStores;
  out.batch.base = base_kind(base);
  out.scaling = scaling == "max" ? ScalingKind::kMax : ScalingKind::kStandard;
  out.make_net = [=](int64_t) -> std::shared_ptr<Net> {
    return std::make_shared<Mlp>(width, device_features);
  };
  return out;
}

}  // namespace tensorsmith::learn::net
