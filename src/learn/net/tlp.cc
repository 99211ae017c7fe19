// TLP (Zhai et al., ASPLOS 2023): latency from the schedule steps alone, with one vector per step.
// MTL-TLP: a shared trunk with a head for each device.
#include "learn/net/net_kind.h"

namespace tensorsmith::learn::net {

namespace {

struct TlpSizes {
  int width = 64;  // TLP: 256
  int heads = 4;   // of the attention; TLP: 8
};

class Tlp final : public Net {
 public:
  // devices = 0: a single head for all devices.
  Tlp(const StepOptions& options, const TlpSizes& sizes, int64_t devices)
      : width_(sizes.width), by_device_(devices > 0) {
    const int64_t w = sizes.width;
    steps_ = register_module("steps", Scaler(options.width()));
    encoder_ = register_module(
        "encoder",
        make_mlp({options.width(), std::max<int64_t>(1, w / 4), std::max<int64_t>(1, w / 2), w, w}, true));
    attention_ = register_module("attention", Attention(w, sizes.heads));
    first_ = register_module("first", torch::nn::Linear(w, w));
    second_ = register_module("second", torch::nn::Linear(w, w));
    heads_ = register_module("heads", torch::nn::ModuleList());
    for (int64_t d = 0; d < std::max<int64_t>(1, devices); ++d) heads_->push_back(make_head());
  }

  NetOutput forward(const NetInput& input) override {
    Tensor x = encoder_->forward(steps_(input.step_values));
    x = x + attention_(x, input.steps);
    x = torch::relu(first_(x)) + x;
    x = torch::relu(second_(x)) + x;
    // As in the original, the head is applied to each step and its outputs are summed. `hidden` is
    // therefore the sum of the head's inputs over the program's steps.
    const Tensor hidden = sum_by_program(x, input.steps) / kStepScale;
    std::vector<Tensor> by_device;
    for (const auto& head : *heads_)
      by_device.push_back(
          sum_by_program(head->as<torch::nn::Sequential>()->forward(x), input.steps).squeeze(1));
    const Tensor values = torch::stack(by_device, 1) / kStepScale;  // [programs, heads]
    if (!by_device_) return {values.squeeze(1), hidden};
    // For a device outside the training data, takes the mean of all heads.
    const Tensor known = input.device.clamp_min(0).unsqueeze(1);
    const Tensor own = values.gather(1, known).squeeze(1);
    return {torch::where(input.device >= 0, own, values.mean(1)), hidden};
  }

  void set_scaling(const InputScaling& scaling) override { steps_->set(scaling.steps); }

  void set_devices(const std::vector<int64_t>& from) override {
    if (!by_device_) return;
    const torch::NoGradGuard no_gradients;
    torch::nn::ModuleList before = heads_;
    heads_ = replace_module("heads", torch::nn::ModuleList());
    for (const int64_t d : from) {
      torch::nn::Sequential head = make_head();
      const auto old = before[static_cast<size_t>(d)]->parameters(), now = head->parameters();
      for (size_t i = 0; i < now.size(); ++i) {
        now[i].copy_(old[i]);
      }
      heads_->push_back(head);
    }
  }

 private:
  // Brings sums over some dozens of steps to the magnitude of single values.
  static constexpr double kStepScale = 16;

  torch::nn::Sequential make_head() const {
    const int64_t w = width_;
    return make_mlp({w, w, std::max<int64_t>(1, w / 2), std::max<int64_t>(1, w / 4), 1}, false);
  }

  int64_t width_;
  bool by_device_;
  Scaler steps_{nullptr};
  torch::nn::Sequential encoder_{nullptr};
  Attention attention_{nullptr};
  torch::nn::Linear first_{nullptr}, second_{nullptr};
  torch::nn::ModuleList heads_{nullptr};
};

Result<NetDesign> design_tlp(bool by_device, const nlohmann::json& given, nlohmann::json& values) {
  Parameters p(given);
  NetDesign out;
  TlpSizes sizes;
  StepOptions steps;
  out.training.loss.loss = "lambdarank";
  out.training.learning_rate = 1e-3;  // TLP: 7e-4
  p.integer("width", sizes.width, 1, 4096);
  p.integer("heads", sizes.heads, 1, 64);
  p.integer("max_steps", steps.max_steps, 1, 1024);
  p.integer("step_numbers", steps.numbers, 1, 64);
  p.flag("log_numbers", steps.log_numbers);
  std::string base = "none";
  p.choice("base", base, {"none", "flops"});
  p.choice("loss", out.training.loss.loss, {"lambdarank", "rmse", "mse", "mape"});
  out.training.read(p);
  TS_ASSIGN_OR_RETURN(values, p.finish());
  if (sizes.width % sizes.heads != 0)
    return Error{ErrorCode::kInvalidArgument, "parameter heads", "must divide width"};
  out.batch.rows = RowKind::kNone;
  out.batch.steps = true;
  out.batch.step_options = steps;
  out.batch.base = base_kind(base);
  out.scaling = ScalingKind::kStandard;
  out.make_net = [=](int64_t devices) -> std::shared_ptr<Net> {
    return std::make_shared<Tlp>(steps, sizes, by_device ? devices : 0);
  };
  return out;
}

}  // namespace

Result<NetDesign> tlp_design(const nlohmann::json& given, nlohmann::json& values) {
  return design_tlp(false, given, values);
}

Result<NetDesign> mtl_tlp_design(const nlohmann::json& given, nlohmann::json& values) {
  return design_tlp(true, given, values);
}

}  // namespace tensorsmith::learn::net
