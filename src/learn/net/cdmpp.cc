// CDMPP (Hu et al., EuroSys 2024): a transformer over the leaves of a program's syntax tree with an
// encoding of their positions in the tree, combined with an encoding of the device. Differences
// from the original: where it has a separate head for each number of leaves, this network has an
// attention pool for any number; where it has batch normalization, this one has layer
// normalization, because a single training device has no variance by which a second one could be
// scaled.
#include "learn/net/net_kind.h"

namespace tensorsmith::learn::net {

namespace {

struct CdmppSizes {
  int width = 64;     // width of the transformer; CDMPP: 164
  int heads = 4;      // CDMPP: 4
  int layers = 2;     // CDMPP: 11
  int hidden = 128;   // width of its feed-forward layers; CDMPP: 2048
  int pooled = 64;    // CDMPP: 69
  int device = 64;    // width of the device encoder's layers; CDMPP: 128
  int decoder = 128;  // CDMPP: 930
  bool positions = true, device_features = true;
};

class Cdmpp final : public Net {
 public:
  explicit Cdmpp(const CdmppSizes& sizes) : sizes_(sizes) {
    rows_ = register_module("rows", Scaler(feature::kPerStoreWidth));
    embed_ = register_module("embed", torch::nn::Linear(feature::kPerStoreWidth, sizes.width));
    layers_ = register_module("layers", torch::nn::ModuleList());
    for (int l = 0; l < sizes.layers; ++l)
      layers_->push_back(EncoderLayer(sizes.width, sizes.heads, sizes.hidden));
    pool_ = register_module("pool", AttentionPool(sizes.width, sizes.heads));
    program_ = register_module("program", torch::nn::Linear(sizes.width, sizes.pooled));
    program_norm_ = register_module("program_norm", norm());
    if (sizes.device_features) {
      device_ = register_module("device",
                                make_mlp({kDeviceColumns, sizes.device, sizes.device, sizes.pooled}, false));
      device_norm_ = register_module("device_norm", norm());
    }
    decoder_ = register_module("decoder",
                               make_mlp({sizes.pooled, sizes.decoder, sizes.decoder, sizes.decoder}, true));
    out_ = register_module("out", torch::nn::Linear(sizes.decoder, 1));
  }

  NetOutput forward(const NetInput& input) override {
    Tensor x = rows_(input.row_values);
    if (sizes_.positions) x = x + position_encoding(input.positions, feature::kPerStoreWidth);
    x = embed_(x);
    for (const auto& layer : *layers_) x = layer->as<EncoderLayerImpl>()->forward(x, input.rows);
    Tensor z = program_norm_(program_(pool_(x, input.rows)));
    if (sizes_.device_features) z = z + device_norm_(device_->forward(input.device_features));
    const Tensor hidden = decoder_->forward(z);
    return {out_(hidden).squeeze(1), hidden};
  }

  void set_scaling(const InputScaling& scaling) override { rows_->set(scaling.rows); }

 private:
  torch::nn::LayerNorm norm() const {
    return torch::nn::LayerNorm(torch::nn::LayerNormOptions({sizes_.pooled}));
  }

  CdmppSizes sizes_;
  Scaler rows_{nullptr};
  torch::nn::Linear embed_{nullptr}, program_{nullptr}, out_{nullptr};
  torch::nn::ModuleList layers_{nullptr};
  AttentionPool pool_{nullptr};
  torch::nn::LayerNorm program_norm_{nullptr}, device_norm_{nullptr};
  torch::nn::Sequential device_{nullptr}, decoder_{nullptr};
};

}  // namespace

Result<NetDesign> cdmpp_design(const nlohmann::json& given, nlohmann::json& values) {
  Parameters p(given);
  NetDesign out;
  CdmppSizes sizes;
  std::string base = "none", scaling = "min-max";
  out.transform = "box-cox";
  out.training.loss.loss = "hybrid";
  out.training.learning_rate = 1e-3;  // CDMPP: 1.68e-5, cyclic
  out.training.clip = 2;
  out.training.weight_decay = 1.3e-3;
  p.integer("width", sizes.width, 1, 4096);
  p.integer("heads", sizes.heads, 1, 64);
  p.integer("layers", sizes.layers, 0, 64);
  p.integer("hidden", sizes.hidden, 1, 16'384);
  p.integer("pooled", sizes.pooled, 1, 4096);
  p.integer("device", sizes.device, 1, 4096);
  p.integer("decoder", sizes.decoder, 1, 16'384);
  p.flag("positions", sizes.positions);
  p.flag("device_features", sizes.device_features);
  p.choice("base", base, {"none", "flops", "roofline"});
  p.choice("scaling", scaling, {"min-max", "standard", "max"});
  p.choice("transform", out.transform, {"box-cox", "log"});
  p.choice("loss", out.training.loss.loss, {"hybrid", "mse", "rmse", "mape", "lambdarank"});
  out.training.read(p);
  TS_ASSIGN_OR_RETURN(values, p.finish());
  if (sizes.width % sizes.heads != 0)
    return Error{ErrorCode::kInvalidArgument, "parameter heads", "must divide width"};
  out.batch.rows = RowKind::kLeaves;
  out.batch.base = base_kind(base);
  out.scaling = scaling == "min-max"    ? ScalingKind::kMinMax
                : scaling == "standard" ? ScalingKind::kStandard
                                        : ScalingKind::kMax;
  out.make_net = [=](int64_t) -> std::shared_ptr<Net> { return std::make_shared<Cdmpp>(sizes); };
  return out;
}

}  // namespace tensorsmith::learn::net
