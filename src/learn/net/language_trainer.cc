// Training of a language model, either on the next token or on which of two measured programs is
// better.
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/hash.h"
#include "learn/lm/language_training.h"
#include "learn/net/checkpoint.h"
#include "learn/net/language_reader.h"
#include "learn/net/module.h"
#include "learn/net/train_loop.h"

namespace tensorsmith::learn::net {

namespace {

using lm::LanguageModel;
using lm::LanguageModelSizes;
using lm::LanguageTraining;
using lm::SentenceSource;

constexpr int kStepsACheckpoint = 200;
constexpr int kStepsAReport = 50;
constexpr int64_t kValidationBatches = 8;

// Weight of the next-token loss of the better programs when preferences are learned. It prevents
// that these become less likely along with the worse ones (Pang et al., Iterative reasoning
// preference optimization, NeurIPS 2024, section 3).
constexpr double kLikelihoodWeight = 1;

// In nats per token.
Tensor next_token_loss(LanguageNet& net, const LanguageBatch& batch) {
  return torch::nn::functional::cross_entropy(net->forward(batch).to(torch::kFloat32), batch.tokens);
}

// Returns the log probabilities of the better and the worse answer of each pair: [pairs, 2].
Tensor pair_likelihoods(LanguageNet& net, const LanguageBatch& batch) {
  const Tensor tokens =
      net->forward(batch).to(torch::kFloat32).log_softmax(1).gather(1, batch.tokens.unsqueeze(1));
  return sum_by_program(tokens, batch.answers).view({-1, 2});
}

// Returns log(probability of the better answer / of the worse) from log probabilities [pairs, 2]:
// [pairs].
Tensor margins(const Tensor& likelihoods) { return likelihoods.select(1, 0) - likelihoods.select(1, 1); }

class LanguageTrainer {
 public:
  LanguageTrainer(const SentenceSource& source, const LanguageTraining& training, const LanguageModel* base,
                  const TrainingControl& control)
      : source_(source),
        training_(training),
        control_(control),
        base_(base),
        sizes_(base != nullptr ? base->sizes : training.sizes),
        device_(compute_device()),
        reader_(source, training, control.seed, device_),
        net_(sizes_),
        pairs_(training.preference > 0) {
    if (pairs_ && base != nullptr) reference_ = LanguageNet(sizes_);
  }

  Result<LanguageModel> run() {
    TS_ASSIGN_OR_RETURN(const auto group, ProcessGroup::join(control_.processes));
    const int64_t processes = control_.processes.count, rank = control_.processes.rank;
    TS_RETURN_IF_ERROR(start());
    torch::optim::AdamW optimizer(
        net_->parameters(),
        torch::optim::AdamWOptions(training_.learning_rate).weight_decay(training_.weight_decay));
    const int64_t batch = reader_.batch_size() * processes;
    const auto steps =
        std::max<int64_t>(1, static_cast<int64_t>(training_.epochs * reader_.sentences() / batch));
    TrainOptions rate;
    rate.learning_rate = training_.learning_rate;
    const std::string name = training_name();
    TS_RETURN_IF_ERROR(resume(control_.checkpoint, name, group.get(), state_, *net_, optimizer));
    if (!control_.checkpoint.empty() && control_.owns_checkpoint) control_.owns_checkpoint();
    const auto save = [&](const TrainState& state) {
      if (control_.checkpoint.empty() || rank > 0) return Status();
      return save_checkpoint(control_.checkpoint, name, state, *net_, optimizer);
    };
    const double begin = SystemClock().monotonic_seconds();
    int64_t done = 0;
    for (; state_.step < steps; ++state_.step) {
      bool stop = control_.stop && control_.stop();
      if (group != nullptr) {
        TS_ASSIGN_OR_RETURN(stop, group->any(stop));
      }
      if (stop) {
        TS_RETURN_IF_ERROR(save(state_));
        return Error{
            ErrorCode::kCancelled, "",
            control_.checkpoint.empty()
                ? "training was interrupted"
                : "training was interrupted; the same command continues from " + control_.checkpoint};
      }
      net_->train();
      optimizer.zero_grad();
      const Tensor loss = loss_of(reader_.batch(state_.step * processes + rank));
      auto value = loss.item<double>();
      if (std::isfinite(value)) loss.backward();
      if (group != nullptr) {
        value /= processes;
        TS_RETURN_IF_ERROR(group->sum_gradients(net_->parameters(), 1.0 / processes, value));
      }
      if (!std::isfinite(value))
        return Error{ErrorCode::kInvalidArgument, "step " + std::to_string(state_.step),
                     "the training loss is no longer finite; lower the learning rate"};
      torch::nn::utils::clip_grad_norm_(net_->parameters(), 1.0);
      for (auto& parameters : optimizer.param_groups())
        parameters.options().set_lr(learning_rate_at(rate, state_.step, steps));
      optimizer.step();
      state_.loss_sum += value;
      state_.programs += 1;
      done += batch;
      if (rank == 0 && ((state_.step + 1) % kStepsAReport == 0 || state_.step + 1 == steps))
        report(steps, done, begin);
      // No checkpoint after the last step: resuming from it would skip the final report.
      if ((state_.step + 1) % kStepsACheckpoint == 0 && state_.step + 1 < steps) {
        // Processors may round the optimizer's steps differently, so all take the weights of
        // process 0.
        if (group != nullptr) TS_RETURN_IF_ERROR(group->broadcast(state_of(*net_)));
        TrainState next = state_;
        ++next.step;
        TS_RETURN_IF_ERROR(save(next));
      }
    }
    return model();
  }

 private:
  Status start() {
    if (pairs_ && base_ == nullptr)
      return Error{ErrorCode::kInvalidArgument, "preference",
                   "needs a trained model to start from (`lm finetune`)"};
    if (reader_.empty())
      return Error{ErrorCode::kInvalidArgument, "corpus",
                   pairs_
                       ? "has no task with two measured programs one of which is fast enough (see --within)"
                       : "has no sentence of a program that is fast enough (see --within)"};
    if (base_ != nullptr && base_->prompting != source_.prompting())
      return Error{ErrorCode::kMismatch, "corpus", "has a different form of prompts than the model"};
    if (base_ != nullptr)
      net_->copy(*base_);
    else
      net_->start(control_.seed);
    net_->to(device_);
    if (pairs_) {
      reference_->copy(*base_);
      reference_->to(device_);
    }
    return {};
  }

  Tensor loss_of(const LanguageBatch& batch) {
    const MixedPrecision mixed(training_.mixed_precision);
    return pairs_ ? preference_loss(batch, pair_likelihoods(net_, batch), reference_likelihoods(batch))
                  : next_token_loss(net_, batch);
  }

  Tensor reference_likelihoods(const LanguageBatch& batch) {
    const torch::NoGradGuard no_gradients;
    return pair_likelihoods(reference_, batch);
  }

  // Equation 7 of Rafailov et al., Direct preference optimization, NeurIPS 2023, plus the
  // next-token loss of the better answers in nats per token.
  Tensor preference_loss(const LanguageBatch& batch, const Tensor& now, const Tensor& before) const {
    const Tensor preferred = torch::log_sigmoid(training_.preference * (margins(now) - margins(before)));
    const Tensor tokens = batch.answers.mask.sum(1).view({-1, 2}).select(1, 0).sum();
    return -preferred.mean() - kLikelihoodWeight * now.select(1, 0).sum() / tokens;
  }

  std::string training_name() const {
    Hasher hasher;
    hasher.add("language model").add(source_.hash()).add(control_.seed);
    hasher.add(uint64_t{source_.prompting().device}).add(uint64_t{source_.prompting().most});
    hasher.add(nlohmann::json{sizes_.width, sizes_.heads, sizes_.layers, sizes_.hidden, training_.epochs,
                              training_.learning_rate, training_.weight_decay, training_.prompts,
                              training_.answers, static_cast<int>(training_.worst), training_.unmeasured,
                              training_.without_similar, training_.masked, training_.validation,
                              training_.preference, training_.mixed_precision}
                   .dump());
    if (base_ != nullptr)
      for (const auto& [name, weight] : base_->weights)
        hasher.add(std::string_view(reinterpret_cast<const char*>(weight.values.data()),
                                    weight.values.size() * sizeof(float)));
    return hasher.hex128();
  }

  void report(int64_t steps, int64_t done, double begin) {
    TrainingProgress progress;
    progress.step = static_cast<int>(state_.step + 1);
    progress.steps = static_cast<int>(steps);
    progress.train_loss = state_.loss_sum / std::max<int64_t>(1, state_.programs);
    state_.loss_sum = 0;
    state_.programs = 0;
    progress.validation_loss = validate();
    const double seconds = SystemClock().monotonic_seconds() - begin;
    progress.samples_per_second = seconds > 0 ? done / seconds : 0;
    last_ = progress;
    if (control_.progress) control_.progress(progress);
  }

  double validate() {
    if (!reader_.has_validation()) return std::nan("");
    const torch::NoGradGuard no_gradients;
    net_->eval();
    double sum = 0;
    for (int64_t b = 0; b < kValidationBatches; ++b)
      sum += loss_of(reader_.validation_batch(b)).item<double>();
    return sum / kValidationBatches;
  }

  // Returns the share of validation pairs whose better answer has the higher probability.
  double pair_accuracy(LanguageNet net) const {
    const torch::NoGradGuard no_gradients;
    net->eval();
    double right = 0, pairs = 0;
    for (int64_t b = 0; b < kValidationBatches; ++b) {
      const Tensor margin = margins(pair_likelihoods(net, reader_.validation_batch(b)));
      right += (margin > 0).sum().item<double>();
      pairs += margin.size(0);
    }
    return right / pairs;
  }

  LanguageModel model() const {
    LanguageModel out;
    out.sizes = sizes_;
    out.prompting = source_.prompting();
    for (const auto& [name, value] : state_of(*net_)) {
      const Tensor plain = value.detach().to(torch::kCPU).contiguous();
      const auto* data = plain.data_ptr<float>();
      out.weights[name] = {plain.sizes().vec(), {data, data + plain.numel()}};
    }
    out.tasks = source_.tasks();
    out.devices = source_.devices();
    if (base_ != nullptr) {
      const auto join = [](std::vector<std::string>& to, const std::vector<std::string>& from) {
        to.insert(to.end(), from.begin(), from.end());
        std::sort(to.begin(), to.end());
        to.erase(std::unique(to.begin(), to.end()), to.end());
      };
      join(out.tasks, base_->tasks);
      join(out.devices, base_->devices);
    }
    out.command = control_.command;
    out.seed = control_.seed;
    out.sentences = reader_.sentences() + (base_ != nullptr ? base_->sentences : 0);
    nlohmann::json metrics{{"train_loss", last_.train_loss}};
    if (std::isfinite(last_.validation_loss)) metrics["validation_loss"] = last_.validation_loss;
    if (pairs_ && reader_.has_validation()) {
      metrics["pair_accuracy"] = pair_accuracy(net_);
      metrics["pair_accuracy_before"] = pair_accuracy(reference_);
    }
    out.metrics = metrics.dump();
    return out;
  }

  const SentenceSource& source_;
  const LanguageTraining& training_;
  const TrainingControl& control_;
  const LanguageModel* base_;
  LanguageModelSizes sizes_;
  torch::Device device_;
  LanguageReader reader_;
  LanguageNet net_;
  bool pairs_;                      // whether preferences are learned
  LanguageNet reference_{nullptr};  // the base model, if preferences are learned
  TrainState state_;
  TrainingProgress last_;
};

}  // namespace

Result<LanguageModel> train_language_net(const SentenceSource& sentences, const LanguageTraining& training,
                                         const LanguageModel* base, const TrainingControl& control) {
  try {
    const Threads threads(std::max(1, control.threads));
    return LanguageTrainer(sentences, training, base, control).run();
  } catch (const c10::Error& e) {
    return Error{ErrorCode::kResourceExhausted, "torch", e.what_without_backtrace()};
  }
}

}  // namespace tensorsmith::learn::net
