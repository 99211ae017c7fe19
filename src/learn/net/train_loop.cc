#include "learn/net/train_loop.h"

#include <ATen/autocast_mode.h>
#include <torch/cuda.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/clock.h"
#include "base/hash.h"
#include "base/rng.h"
#include "learn/net/checkpoint.h"

namespace tensorsmith::learn::net {

namespace {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Net& net, const TrainOptions& options) {
  if (options.optimizer == "adam") {
    return std::make_unique<torch::optim::Adam>(
        net.parameters(),
        torch::optim::AdamOptions(options.learning_rate).weight_decay(options.weight_decay));
  }
  return std::make_unique<torch::optim::AdamW>(
      net.parameters(), torch::optim::AdamWOptions(options.learning_rate).weight_decay(options.weight_decay));
}

// Returns the share of pairs with different times that are predicted in the wrong order, within
// lists of one task.
double wrong_pairs(const std::vector<double>& truth, const std::vector<double>& predicted,
                   const std::vector<int64_t>& task) {
  constexpr size_t kList = 256;
  int64_t wrong = 0, all = 0;
  for (size_t begin = 0, end = 0; begin < truth.size(); begin = end) {
    for (end = begin; end < truth.size() && end < begin + kList && task[end] == task[begin];) ++end;
    for (size_t i = begin; i < end; ++i) {
      for (size_t j = i + 1; j < end; ++j) {
        if (truth[i] == truth[j]) continue;
        ++all;
        wrong += (truth[i] < truth[j]) == (predicted[i] < predicted[j]) ? 0 : 1;
      }
    }
  }
  return all == 0 ? 0 : static_cast<double>(wrong) / all;
}

}  // namespace

void TrainOptions::read(Parameters& p) {
  p.integer("epochs", epochs, 1, 100'000);
  p.integer("batch", batch, 1, 1'000'000);
  p.real("learning_rate", learning_rate, 1e-9, 10);
  p.real("weight_decay", weight_decay, 0, 10);
  p.real("clip", clip, 0, 1e9);
  p.choice("optimizer", optimizer, {"adam", "adamw"});
  p.choice("schedule", schedule, {"one-cycle", "cosine", "cyclic", "constant"});
  p.integer("patience", patience, 0, 100'000);
  p.integer("list", list, 2, 100'000);
  p.real("cmd", cmd, 0, 1e9);
  p.real("rank_weight", loss.rank_weight, 0, 1e9);
}

double learning_rate_at(const TrainOptions& options, int64_t step, int64_t steps) {
  const double at = static_cast<double>(step) / std::max<int64_t>(1, steps);
  const auto down = [](double x) { return 0.5 * (1 + std::cos(std::numbers::pi * x)); };
  double factor = 1;
  if (options.schedule == "one-cycle") {
    constexpr double kRise = 0.1, kFirst = 1.0 / 25;
    factor = at < kRise ? kFirst + (1 - kFirst) * at / kRise : down((at - kRise) / (1 - kRise));
  } else if (options.schedule == "cosine") {
    factor = down(at);
  } else if (options.schedule == "cyclic") {
    const double x = 10 * at - std::floor(10 * at);
    factor = 0.1 + (10 - 0.1) * (1 - std::abs(2 * x - 1));
  }
  return options.learning_rate * factor;
}

namespace {

// torch 2.4 introduced functions for all devices; earlier versions have separate ones.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
void set_autocast(at::DeviceType device, bool on) {
  if (on) at::autocast::set_autocast_dtype(device, at::kBFloat16);
  at::autocast::set_autocast_enabled(device, on);
}
#else
void set_autocast(at::DeviceType device, bool on) {
  const bool cpu = device == at::kCPU;
  if (on) (cpu ? at::autocast::set_autocast_cpu_dtype : at::autocast::set_autocast_gpu_dtype)(at::kBFloat16);
  (cpu ? at::autocast::set_cpu_enabled : at::autocast::set_enabled)(on);
}
#endif

}  // namespace

MixedPrecision::MixedPrecision(bool on) : on_(on) {
  if (!on_) return;
  at::autocast::increment_nesting();
  set_autocast(at::kCPU, true);
  if (torch::cuda::is_available()) set_autocast(at::kCUDA, true);
}

MixedPrecision::~MixedPrecision() {
  if (!on_) return;
  set_autocast(at::kCPU, false);
  if (torch::cuda::is_available()) set_autocast(at::kCUDA, false);
  // Autocast caches converted weights; the cache must be cleared after each pass because the
  // optimizer changes the weights.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
}

torch::Device compute_device() {
  return torch::cuda::is_available() ? torch::Device(torch::kCUDA) : torch::Device(torch::kCPU);
}

std::vector<double> predict_batch(Net& net, const Batch& batch, const BatchOptions& options,
                                  const LabelTransform& transform, torch::Device device) {
  const torch::NoGradGuard no_gradients;
  const NetOutput output = net.forward(NetInput::create(batch, options, device));
  const Tensor plain = output.value.to(torch::kCPU).to(torch::kFloat64).contiguous();
  std::vector<double> out(plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel());
  for (size_t p = 0; p < out.size(); ++p) out[p] = transform.decode(out[p]) + batch.base[p];
  return out;
}

Result<std::vector<double>> predict_records(Net& net, Records& records, const LabelTransform& transform,
                                            std::span<const int64_t> numbers, torch::Device device) {
  std::vector<double> out;
  Batch batch;
  for (size_t at = 0; at < numbers.size(); at += kPredictBatch) {
    TS_RETURN_IF_ERROR(
        records.read_unlabelled(numbers.subspan(at, std::min(kPredictBatch, numbers.size() - at)), batch));
    const std::vector<double> part = predict_batch(net, batch, records.options(), transform, device);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

namespace {

// State of one call of train_net.
class Training {
 public:
  Training(Net& net, Records& records, const LabelTransform& transform, const TrainOptions& options,
           const TrainingControl& control, const std::string& training, torch::Device device,
           ProcessGroup* group)
      : net_(net),
        records_(records),
        transform_(transform),
        options_(options),
        control_(control),
        training_(training),
        device_(device),
        group_(group),
        optimizer_(make_optimizer(net, options)) {
    steps_ = (records.train_size() + options.batch - 1) / options.batch;
    for (const int64_t i : records.validation()) {
      const Store::Entry entry = records.data().store->entry(i);
      truth_.push_back(std::log(entry.mean_seconds));
      task_.push_back(int64_t{entry.workload} * 65'536 + entry.device);
    }
  }

  Result<TrainOutcome> run() {
    TS_RETURN_IF_ERROR(resume(control_.checkpoint, training_, group_, state_, net_, *optimizer_));
    if (!control_.checkpoint.empty() && control_.owns_checkpoint) control_.owns_checkpoint();
    while (state_.epoch < options_.epochs && !out_of_patience()) TS_RETURN_IF_ERROR(run_epoch());
    if (!state_.best.empty()) copy_best_to_net();
    TrainOutcome out;
    out.epochs = state_.epoch;
    out.best_epoch = state_.best.empty() ? state_.epoch - 1 : state_.best_epoch;
    out.validation_error = state_.best.empty() ? std::nan("") : state_.best_error;
    return out;
  }

 private:
  bool is_first() const { return group_ == nullptr || group_->rank() == 0; }

  bool out_of_patience() const {
    return options_.patience > 0 && state_.best_epoch >= 0 &&
           state_.epoch - 1 - state_.best_epoch >= options_.patience;
  }

  Status run_epoch() {
    const std::vector<int64_t> order =
        records_.order(control_.seed, state_.epoch, options_.loss.ranks() ? options_.list : 0);
    const double begin = SystemClock().monotonic_seconds();
    const int64_t done = state_.programs;
    net_.train();
    for (; state_.step < steps_; ++state_.step) {
      bool stop = control_.stop && control_.stop();
      if (group_ != nullptr) {
        TS_ASSIGN_OR_RETURN(stop, group_->any(stop));
      }
      if (stop) {
        TS_RETURN_IF_ERROR(save());
        return Error{
            ErrorCode::kCancelled, "",
            control_.checkpoint.empty()
                ? "training was interrupted"
                : "training was interrupted; the same command continues from " + control_.checkpoint};
      }
      const size_t first = state_.step * options_.batch;
      TS_RETURN_IF_ERROR(train_step(std::span<const int64_t>(order).subspan(
          first, std::min<size_t>(options_.batch, order.size() - first))));
    }
    const double seconds = SystemClock().monotonic_seconds() - begin;
    TrainingProgress progress;
    progress.step = state_.epoch + 1;
    progress.steps = options_.epochs;
    progress.train_loss = state_.loss_sum / std::max<int64_t>(1, state_.programs);
    progress.samples_per_second = seconds > 0 ? (state_.programs - done) / seconds : 0;
    // Processors may round the optimizer's steps differently, so all take the weights of process 0.
    if (group_ != nullptr) TS_RETURN_IF_ERROR(group_->broadcast(state_of(net_)));
    TS_RETURN_IF_ERROR(validate(progress));
    ++state_.epoch;
    state_.step = 0;
    state_.loss_sum = 0;
    state_.programs = 0;
    if (control_.progress && is_first()) control_.progress(progress);
    return save();
  }

  Status train_step(std::span<const int64_t> numbers) {
    const int64_t global_step = int64_t{state_.epoch} * steps_ + state_.step;
    optimizer_->zero_grad();
    double value = 0;
    if (group_ == nullptr) {
      TS_ASSIGN_OR_RETURN(value, add_gradients(numbers, global_step));
    } else {
      const size_t unit = options_.loss.ranks() ? options_.list : 1;
      const auto [begin, end] = share_of(numbers.size(), unit, group_->rank(), group_->count());
      const double weight = static_cast<double>(end - begin) / numbers.size();
      if (end > begin) {
        TS_ASSIGN_OR_RETURN(value, add_gradients(numbers.subspan(begin, end - begin), global_step));
      }
      value *= weight;
      TS_RETURN_IF_ERROR(group_->sum_gradients(net_.parameters(), weight, value));
    }
    if (!std::isfinite(value))
      return Error{ErrorCode::kInvalidArgument, "epoch " + std::to_string(state_.epoch + 1),
                   "the training loss is no longer finite; lower learning_rate"};
    state_.loss_sum += value * numbers.size();
    state_.programs += std::ssize(numbers);
    if (options_.clip > 0) torch::nn::utils::clip_grad_norm_(net_.parameters(), options_.clip);
    for (auto& group : optimizer_->param_groups())
      group.options().set_lr(learning_rate_at(options_, global_step, steps_ * options_.epochs));
    optimizer_->step();
    return {};
  }

  // Returns the loss of these programs.
  Result<double> add_gradients(std::span<const int64_t> numbers, int64_t global_step) {
    TS_RETURN_IF_ERROR(records_.read(numbers, batch_));
    const NetOutput output = net_.forward(NetInput::create(batch_, records_.options(), device_));
    const Targets targets = Targets::create(batch_, transform_, device_);
    Tensor loss = total_loss(output, targets, transform_, options_.loss);
    if (options_.cmd > 0 && !records_.unlabelled().empty()) {
      TS_RETURN_IF_ERROR(draw_unlabelled(numbers.size(), global_step));
      const NetOutput other = net_.forward(NetInput::create(batch_, records_.options(), device_));
      loss = loss + options_.cmd * central_moment_discrepancy(torch::sigmoid(output.hidden),
                                                              torch::sigmoid(other.hidden));
    }
    const auto value = loss.item<double>();
    if (std::isfinite(value)) loss.backward();
    return value;
  }

  Status draw_unlabelled(size_t count, int64_t step) {
    Hasher hasher;
    hasher.add(control_.seed).add(step).add("unlabelled");
    if (!is_first()) hasher.add(group_->rank());
    Rng rng(hasher.digest64());
    std::vector<int64_t> drawn;
    const std::vector<int64_t>& from = records_.unlabelled();
    for (size_t i = 0; i < count; ++i) drawn.push_back(from[rng.below(from.size())]);
    return records_.read_unlabelled(drawn, batch_);
  }

  // Returns the error on the validation records.
  Result<double> validation_error() {
    net_.eval();
    TS_ASSIGN_OR_RETURN(const std::vector<double> predicted,
                        predict_records(net_, records_, transform_, records_.validation(), device_));
    if (options_.loss.ranks_only()) return wrong_pairs(truth_, predicted, task_);
    double error = 0;
    for (size_t i = 0; i < truth_.size(); ++i) {
      const double relative = std::abs(std::expm1(predicted[i] - truth_[i]));
      error += std::isfinite(relative) ? std::min(relative, kMostError) : kMostError;
    }
    return error / truth_.size();
  }

  Status validate(TrainingProgress& progress) {
    progress.validation_loss = std::nan("");
    if (truth_.empty()) return {};
    double error = 0;
    if (is_first()) {
      TS_ASSIGN_OR_RETURN(error, validation_error());
    }
    if (group_ != nullptr) {
      Tensor value = torch::full({1}, error, torch::kFloat64);
      TS_RETURN_IF_ERROR(group_->broadcast(value));
      error = value.item<double>();
    }
    progress.validation_loss = error;
    if (state_.best_epoch < 0 || error < state_.best_error) {
      state_.best_epoch = state_.epoch;
      state_.best_error = error;
      state_.best.clear();
      for (const auto& [name, value] : state_of(net_)) state_.best.push_back(value.detach().clone());
    }
    return {};
  }

  void copy_best_to_net() {
    const torch::NoGradGuard no_gradients;
    const auto to = state_of(net_);
    for (size_t i = 0; i < to.size(); ++i) {
      to[i].second.copy_(state_.best[i]);
    }
  }

  Status save() const {
    if (control_.checkpoint.empty() || !is_first()) return {};
    return save_checkpoint(control_.checkpoint, training_, state_, net_, *optimizer_);
  }

  Net& net_;
  Records& records_;
  const LabelTransform& transform_;
  const TrainOptions& options_;
  const TrainingControl& control_;
  const std::string& training_;
  torch::Device device_;
  ProcessGroup* group_;  // null: this process is alone
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  int64_t steps_ = 0;          // per epoch
  std::vector<double> truth_;  // log(seconds) of the validation records
  std::vector<int64_t> task_;  // task of each validation record
  TrainState state_;
  Batch batch_;
};

}  // namespace

Result<TrainOutcome> train_net(Net& net, Records& records, const LabelTransform& transform,
                               const TrainOptions& options, const TrainingControl& control,
                               const std::string& training, torch::Device device, ProcessGroup* group) {
  const Threads threads(std::max(1, control.threads));
  auto outcome = Training(net, records, transform, options, control, training, device, group).run();
  net.eval();
  return outcome;
}

}  // namespace tensorsmith::learn::net
