// The parts common to all neural latency models: training from records, file format and prediction.
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/statistics.h"
#include "learn/latency/evaluation.h"
#include "learn/latency/held_out.h"
#include "learn/latency/kinds.h"
#include "learn/latency/roofline.h"
#include "learn/net/checkpoint.h"
#include "learn/net/net_kind.h"

namespace tensorsmith::learn::net {

namespace {

using Json = nlohmann::json;

// By default, glibc returns large freed blocks to the system at once, although every step of
// training or prediction allocates the same sizes again; this costs a fifth of the time.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

// Converts exceptions of torch (out of memory, a failing CUDA device) to errors.
template <class Run>
auto guarded(Run run) -> decltype(run()) {
  try {
    return run();
  } catch (const c10::Error& e) {
    return Error{ErrorCode::kResourceExhausted, "torch", e.what_without_backtrace()};
  }
}

class NetModel final : public CostModel {
 public:
  NetModel(const NetKind& kind, NetDesign design, std::shared_ptr<Net> net, const LabelTransform& transform,
           double sigma, ModelCard card)
      : kind_(kind),
        design_(std::move(design)),
        net_(std::move(net)),
        transform_(transform),
        sigma_(sigma),
        card_(std::move(card)) {
    design_.batch.devices = card_.devices;
  }

  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override {
    return guarded([&] { return predict_by_batches(queries); });
  }
  ModelInputs inputs() const override {
    return {.leaves = true, .trace = design_.batch.steps || design_.batch.summaries};
  }
  bool ranks_only() const override { return design_.training.loss.ranks_only(); }
  const ModelCard& card() const override { return card_; }
  Status save(const std::string& path) const override {
    ModelFile file;
    file.card = card_;
    const double label[] = {transform_.center, transform_.lambda, transform_.mean, transform_.deviation};
    file.add<double>("label", {4}, label);
    file.add<double>("sigma", {1}, std::span(&sigma_, 1));
    for (const auto& [name, value] : state_of(*net_)) {
      const Tensor plain = value.detach().to(torch::kCPU).contiguous();
      file.add<float>("net." + name, plain.sizes().vec(),
                      {plain.data_ptr<float>(), static_cast<size_t>(plain.numel())});
    }
    return write_model_file(file, path);
  }

  const NetKind& kind() const { return kind_; }
  const NetDesign& design() const { return design_; }
  const Net& net() const { return *net_; }
  const LabelTransform& transform() const { return transform_; }
  double sigma() const { return sigma_; }
  void set_metrics(std::string metrics) { card_.metrics = std::move(metrics); }

 private:
  // Scores of models that only rank have no unit and may be large. They are compressed so that they
  // stay finite and keep their order.
  double to_seconds(double log_seconds) const {
    constexpr double kBend = 50, kMost = 300;
    if (ranks_only()) log_seconds = kBend * std::asinh(log_seconds / kBend);
    return std::exp(std::clamp(log_seconds, -kMost, kMost));
  }

  Result<std::vector<Prediction>> predict_by_batches(std::span<const ProgramQuery> queries) const {
    // Batches programs of similar size to reduce padding.
    std::vector<size_t> order(queries.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto size = [&](size_t i) {
      const ProgramQuery& q = queries[i];
      if (design_.batch.steps) return q.trace == nullptr ? size_t{0} : q.trace->steps.size();
      return q.leaves == nullptr ? size_t{0} : static_cast<size_t>(q.leaves->vectors.rows);
    };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return size(a) < size(b); });
    std::vector<Prediction> out(queries.size());
    UnseenEffects unseen(card_);
    Batch batch;
    for (size_t at = 0; at < order.size(); at += kPredictBatch) {
      const auto chunk = std::span(order).subspan(at, std::min(kPredictBatch, order.size() - at));
      batch.clear();
      for (const size_t i : chunk) {
        if (auto added = batch.add(queries[i], design_.batch); !added.ok())
          return Error{added.error().code, "program " + std::to_string(i), added.error().reason};
      }
      const std::vector<double> predicted = predict_batch(*net_, batch, design_.batch, transform_, device_);
      for (size_t i = 0; i < chunk.size(); ++i) {
        Prediction& one = out[chunk[i]];
        one.seconds = to_seconds(predicted[i]);
        if (ranks_only()) continue;  // the error of scores as seconds is meaningless
        one.log_sigma = sigma_;
        unseen.apply(*queries[chunk[i]].device, one);
      }
    }
    return out;
  }

  const NetKind& kind_;
  NetDesign design_;
  std::shared_ptr<Net> net_;
  LabelTransform transform_;
  double sigma_;  // standard deviation of log(seconds)
  ModelCard card_;
  torch::Device device_ = compute_device();
};

// Returns the standard deviation of log(seconds) on the validation records; 0 if there are none.
Result<double> validation_sigma(Net& net, Records& records, const LabelTransform& transform) {
  const std::vector<int64_t>& numbers = records.validation();
  if (numbers.empty()) return 0.0;
  TS_ASSIGN_OR_RETURN(const std::vector<double> predicted,
                      predict_records(net, records, transform, numbers, compute_device()));
  // Uses the quantile of the absolute error that a normal distribution has at one sigma, as
  // Evaluation::log_sigma does, so that a few large errors do not widen the intervals of all
  // programs.
  std::vector<double> errors;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double truth = records.data().store->entry(numbers[i]).mean_seconds;
    errors.push_back(std::abs(predicted[i] - std::log(truth)));
  }
  return quantile(std::move(errors), 0.6827);
}

// Returns the squared distance between the devices' attributes.
double distance(const target::Device& a, const target::Device& b) {
  const auto x = device_columns(a), y = device_columns(b);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

class NetTrainer final : public CostModelTrainer {
 public:
  NetTrainer(const NetKind& kind, NetDesign design, Json parameters)
      : kind_(kind), design_(std::move(design)), parameters_(std::move(parameters)) {}

  bool several_processes() const override { return true; }
  Result<std::unique_ptr<CostModel>> train(const TrainingData& data,
                                           const TrainingControl& control) const override {
    return guarded([&] { return train_unguarded(data, control); });
  }
  Result<std::unique_ptr<CostModel>> fine_tune(const CostModel& model, const TrainingData& data,
                                               const TrainingControl& control) const override {
    return guarded([&] { return fine_tune_unguarded(model, data, control); });
  }

 private:
  Result<std::unique_ptr<CostModel>> train_unguarded(const TrainingData& data,
                                                     const TrainingControl& control) const {
    TS_ASSIGN_OR_RETURN(const auto group, ProcessGroup::join(control.processes));
    ModelCard card = make_card(kind_.name, data, control, parameters_);
    NetDesign design = design_;
    design.batch.devices = card.devices;
    TS_ASSIGN_OR_RETURN(const auto records,
                        Records::create(data, design.batch, design.training.loss.ranks()));
    TS_ASSIGN_OR_RETURN(const Records::Fit fit, records->fit(design.scaling, design.transform));
    const std::shared_ptr<Net> net = design.make_net(std::ssize(card.devices));
    initialize(*net, control.seed);
    net->set_scaling(fit.inputs);
    return finish(design, net, fit.labels, 0, std::move(card), *records, data, control, nullptr, group.get());
  }

  Result<std::unique_ptr<CostModel>> fine_tune_unguarded(const CostModel& model, const TrainingData& data,
                                                         const TrainingControl& control) const {
    const auto* from = dynamic_cast<const NetModel*>(&model);
    if (from == nullptr || &from->kind() != &kind_)
      return Error{ErrorCode::kInvalidArgument, "",
                   "a model of kind " + model.card().kind + " cannot be fine-tuned as " + kind_.name};
    TS_ASSIGN_OR_RETURN(const auto group, ProcessGroup::join(control.processes));
    NetDesign design = from->design();  // keeps the model's structure, with this trainer's training options
    design.training = design_.training;
    Json parameters = Json::parse(from->card().parameters);
    Parameters training_names{kNothing};
    TrainOptions().read(training_names);
    TS_ASSIGN_OR_RETURN(const Json names, training_names.finish());
    for (const auto& [name, unused] : names.items()) parameters[name] = parameters_.at(name);
    parameters["loss"] = parameters_.at("loss");
    ModelCard card = make_card(kind_.name, data, control, parameters, &from->card());
    design.batch.devices = card.devices;
    const std::vector<std::string>& trained_on = from->card().devices;
    const std::shared_ptr<Net> net = design.make_net(std::ssize(trained_on));
    copy_state(from->net(), *net);
    std::vector<int64_t> sources;
    for (const std::string& name : card.devices) {
      const auto known = std::find(trained_on.begin(), trained_on.end(), name);
      sources.push_back(known != trained_on.end() ? known - trained_on.begin()
                                                  : nearest(name, trained_on, data));
    }
    net->set_devices(sources);
    TS_ASSIGN_OR_RETURN(const auto records,
                        Records::create(data, design.batch, design.training.loss.ranks()));
    return finish(design, net, from->transform(), from->sigma(), std::move(card), *records, data, control,
                  &model, group.get());
  }

  static void copy_state(const Net& from, Net& to) {
    const torch::NoGradGuard no_gradients;
    const auto source = state_of(from), target = state_of(to);
    for (size_t i = 0; i < target.size(); ++i) {
      target[i].second.copy_(source[i].second);
    }
  }

  // Returns the number of the training device with the most similar attributes.
  static int64_t nearest(const std::string& name, const std::vector<std::string>& trained_on,
                         const TrainingData& data) {
    const auto find = [&](const std::string& wanted) {
      const auto it = std::find_if(data.devices.begin(), data.devices.end(), [&](const target::Device* d) {
        return d != nullptr && d->name == wanted;
      });
      return it == data.devices.end() ? find_registered(wanted) : *it;
    };
    const target::Device* device = find(name);
    int64_t best = 0;
    double least = INFINITY;
    for (size_t d = 0; d < trained_on.size(); ++d) {
      const target::Device* other = find(trained_on[d]);
      if (device == nullptr || other == nullptr || distance(*device, *other) >= least) continue;
      least = distance(*device, *other);
      best = d;
    }
    return best;
  }
  static const target::Device* find_registered(const std::string& name) {
    for (const target::Device& d : target::registry()) {
      if (d.name == name) return &d;
    }
    return nullptr;
  }

  // sigma: used if there are no validation records. base: the model that training continues from,
  // may be null.
  Result<std::unique_ptr<CostModel>> finish(const NetDesign& design, std::shared_ptr<Net> net,
                                            const LabelTransform& transform, double sigma, ModelCard card,
                                            Records& records, const TrainingData& data,
                                            const TrainingControl& control, const CostModel* base,
                                            ProcessGroup* group) const {
    keep_freed_memory();
    const torch::Device device = compute_device();
    net->to(device);
    const std::string training = training_hash(kind_.name, data, control, Json::parse(card.parameters), base);
    TS_ASSIGN_OR_RETURN(const TrainOutcome outcome, train_net(*net, records, transform, design.training,
                                                              control, training, device, group));
    TS_ASSIGN_OR_RETURN(const double measured, validation_sigma(*net, records, transform));
    if (measured > 0) sigma = measured;
    auto model = std::make_unique<NetModel>(kind_, design, std::move(net), transform, sigma, std::move(card));
    TS_ASSIGN_OR_RETURN(const std::string scores, validation_metrics(*model, data));
    Json metrics = Json::parse(scores);
    metrics["epochs"] = outcome.epochs;
    metrics["best_epoch"] = outcome.best_epoch + 1;
    model->set_metrics(metrics.dump());
    return std::unique_ptr<CostModel>(std::move(model));
  }

  inline static const Json kNothing = Json::object();
  const NetKind& kind_;
  NetDesign design_;
  Json parameters_;
};

}  // namespace

BaseKind base_kind(const std::string& name) {
  return name == "flops" ? BaseKind::kFlops : name == "roofline" ? BaseKind::kRoofline : BaseKind::kNone;
}

std::unique_ptr<CostModelTrainer> make_net_trainer(const NetKind& kind, NetDesign design, Json parameters) {
  return std::make_unique<NetTrainer>(kind, std::move(design), std::move(parameters));
}

Result<std::unique_ptr<CostModel>> net_from_file(const NetKind& kind, const ModelFile& file) {
  const torch::NoGradGuard no_gradients;
  Json values;
  auto design = kind.design(Json::parse(file.card.parameters), values);
  if (!design.ok()) return Error{ErrorCode::kCorrupt, "", "has bad parameters: " + design.error().message()};
  TS_ASSIGN_OR_RETURN(const std::vector<double> label, file.values<double>("label", {4}));
  TS_ASSIGN_OR_RETURN(const std::vector<double> sigma, file.values<double>("sigma", {1}));
  const std::shared_ptr<Net> net = design->make_net(std::ssize(file.card.devices));
  for (const auto& [name, to] : state_of(*net)) {
    TS_ASSIGN_OR_RETURN(std::vector<float> values_of,
                        file.values<float>("net." + name, std::span<const int64_t>(to.sizes().vec())));
    to.copy_(torch::from_blob(values_of.data(), to.sizes(), torch::kFloat32));
  }
  keep_freed_memory();
  net->to(compute_device());
  net->eval();
  const LabelTransform transform = {label[0], label[1], label[2], label[3]};
  return std::unique_ptr<CostModel>(
      std::make_unique<NetModel>(kind, std::move(*design), net, transform, sigma[0], file.card));
}

}  // namespace tensorsmith::learn::net
