// The language model in libtorch, and its training. learn/lm/language_model.h says what it computes.
#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/rng.h"
#include "learn/lm/language_training.h"
#include "learn/net/checkpoint.h"
#include "learn/net/layers.h"
#include "learn/net/module.h"
#include "learn/net/train_loop.h"

namespace tensorsmith::learn::net {

namespace {

using lm::LanguageModel;
using lm::LanguageModelSizes;
using lm::LanguageTraining;
using lm::Quality;
using lm::SentenceSource;

constexpr int kStepsACheckpoint = 200;
constexpr int kStepsAReport = 50;
constexpr int64_t kValidationBatches = 8;

torch::nn::LayerNorm make_norm(int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

class LanguageLayerImpl : public torch::nn::Module {
 public:
  explicit LanguageLayerImpl(const LanguageModelSizes& sizes) : heads_(sizes.heads) {
    norm1_ = register_module("norm1", make_norm(sizes.width));
    norm2_ = register_module("norm2", make_norm(sizes.width));
    qkv_ = register_module("qkv", torch::nn::Linear(sizes.width, 3 * sizes.width));
    out_ = register_module("out", torch::nn::Linear(sizes.width, sizes.width));
    up_ = register_module("up", torch::nn::Linear(sizes.width, sizes.hidden));
    down_ = register_module("down", torch::nn::Linear(sizes.hidden, sizes.width));
  }

  // prompt: [prompts, longest prompt, width]; absent: [prompts, longest prompt], places without a position; answer:
  // [prompts, answers, longest answer, width]; later: [longest answer, longest answer], what a position must not see.
  void forward(Tensor& prompt, const Tensor& absent, Tensor& answer, const Tensor& later) {
    const int64_t g = prompt.size(0), p = prompt.size(1), width = prompt.size(2);
    const int64_t m = answer.size(1), t = answer.size(2), size = width / heads_;
    const double scale = 1 / std::sqrt(static_cast<double>(size));
    const double never = -1e9;
    // [3, prompts, heads, positions, size]
    const Tensor of_prompt = qkv_(norm1_(prompt)).view({g, p, 3, heads_, size}).permute({2, 0, 3, 1, 4});
    // [3, prompts, answers, heads, positions, size]
    const Tensor of_answer =
        qkv_(norm1_(answer)).view({g, m, t, 3, heads_, size}).permute({3, 0, 1, 4, 2, 5}).contiguous();
    const Tensor hidden = absent.view({g, 1, 1, p});
    const Tensor among =
        torch::matmul(of_prompt[0] * scale, of_prompt[1].transpose(2, 3)).masked_fill(hidden, never);
    const Tensor mixed =
        torch::matmul(among.softmax(-1), of_prompt[2]).permute({0, 2, 1, 3}).reshape({g, p, width});
    const Tensor q = of_answer[0] * scale;
    // The queries of all answers to a prompt meet its keys together: [prompts, heads, answers * positions, ...]
    const Tensor all = q.permute({0, 2, 1, 3, 4}).reshape({g, heads_, m * t, size});
    const Tensor before = torch::matmul(all, of_prompt[1].transpose(2, 3))
                              .masked_fill(hidden, never)
                              .view({g, heads_, m, t, p});
    const Tensor own =
        torch::matmul(q, of_answer[1].transpose(3, 4)).masked_fill(later, never).permute({0, 2, 1, 3, 4});
    const Tensor weights = torch::cat({before, own}, -1).softmax(-1);
    const Tensor from_prompt =
        torch::matmul(weights.narrow(-1, 0, p).reshape({g, heads_, m * t, p}), of_prompt[2])
            .view({g, heads_, m, t, size});
    const Tensor from_own = torch::matmul(weights.narrow(-1, p, t), of_answer[2].permute({0, 2, 1, 3, 4}));
    const Tensor attended = (from_prompt + from_own).permute({0, 2, 3, 1, 4}).reshape({g, m, t, width});
    prompt = prompt + out_(mixed);
    answer = answer + out_(attended);
    prompt = prompt + down_(torch::relu(up_(norm2_(prompt))));
    answer = answer + down_(torch::relu(up_(norm2_(answer))));
  }

 private:
  int64_t heads_;
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr};
  torch::nn::Linear qkv_{nullptr}, out_{nullptr}, up_{nullptr}, down_{nullptr};
};
TORCH_MODULE(LanguageLayer);

// A batch as tensors: the same number of answers for each prompt.
struct LanguageBatch {
  Tensor prompt_entries, prompt_weights,
      prompt_begin;  // features of all positions, and where each position begins
  Tensor answer_entries, answer_weights, answer_begin;
  Ragged prompts;  // positions by prompt
  Ragged answers;  // positions by answer, prompt by prompt
  Tensor tokens;   // [answer positions] int64
  Tensor allowed;  // [answer positions, kOutputs] bool
};

// Positions of several sequences, collected.
class PositionCollector {
 public:
  void add(const lm::Positions& positions) {
    for (size_t i = 0; i + 1 < positions.begin.size(); ++i)
      begin_.push_back(static_cast<int64_t>(entries_.size()) + positions.begin[i]);
    for (const lm::Feature& feature : positions.features) {
      entries_.push_back(feature.entry);
      weights_.push_back(feature.weight);
    }
    rows_.push_back(rows_.back() + static_cast<int64_t>(positions.size()));
  }
  void tensors(torch::Device device, Tensor& entries, Tensor& weights, Tensor& begin, Ragged& ragged) const {
    entries = torch::tensor(entries_, torch::kInt64).to(device);
    weights = torch::tensor(weights_, torch::kFloat32).to(device);
    begin = torch::tensor(begin_, torch::kInt64).to(device);
    ragged = Ragged::create(rows_, device);
  }

 private:
  std::vector<int64_t> entries_, begin_, rows_{0};
  std::vector<float> weights_;
};

class LanguageNetImpl : public torch::nn::Module {
 public:
  explicit LanguageNetImpl(const LanguageModelSizes& sizes) {
    embedding_ = register_parameter("embedding", torch::zeros({lm::kFeatures, sizes.width}));
    layers_ = register_module("layer", torch::nn::ModuleList());
    for (int l = 0; l < sizes.layers; ++l) layers_->push_back(LanguageLayer(sizes));
    norm_ = register_module("norm", make_norm(sizes.width));
    output_ = register_module("output", torch::nn::Linear(sizes.width, lm::kOutputs));
  }

  // From the seed alone.
  void start(uint64_t seed) {
    initialize(*this, seed);
    const torch::NoGradGuard no_gradients;
    at::Generator generator = at::detail::createCPUGenerator(seed + 1);
    embedding_.normal_(0, 0.05, generator);
  }

  // Scores of the tokens at each position of an answer: [answer positions, kOutputs].
  Tensor forward(const LanguageBatch& batch) {
    Tensor prompt = pad(embed(batch.prompt_entries, batch.prompt_weights, batch.prompt_begin), batch.prompts);
    const Tensor rows =
        pad(embed(batch.answer_entries, batch.answer_weights, batch.answer_begin), batch.answers);
    Tensor answer = rows.view({prompt.size(0), rows.size(0) / prompt.size(0), rows.size(1), rows.size(2)});
    const Tensor absent = batch.prompts.mask.logical_not();
    const int64_t t = answer.size(2);
    const Tensor later =
        torch::ones({t, t}, torch::TensorOptions(torch::kBool).device(prompt.device())).triu(1);
    for (const auto& layer : *layers_) layer->as<LanguageLayerImpl>()->forward(prompt, absent, answer, later);
    return output_(norm_(unpad(answer.reshape({-1, t, answer.size(3)}), batch.answers)));
  }

 private:
  Tensor embed(const Tensor& entries, const Tensor& weights, const Tensor& begin) {
    return std::get<0>(torch::embedding_bag(embedding_, entries, begin, false, 0, false, weights));
  }

  Tensor embedding_;
  torch::nn::ModuleList layers_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear output_{nullptr};
};
TORCH_MODULE(LanguageNet);

// Which sentences are read, by prompt, and batches of them.
class Reader {
 public:
  Reader(const SentenceSource& source, const LanguageTraining& training, uint64_t seed, torch::Device device)
      : source_(source), training_(training), seed_(seed), device_(device) {
    for (size_t p = 0; p < source.prompts(); ++p) {
      Prompt prompt;
      prompt.number = p;
      for (const int32_t s : source.sentences_of(p)) {
        const Quality quality = source.quality_of(s);
        if (quality == Quality::kUnmeasured ? training.unmeasured : quality <= training.worst)
          prompt.sentences.push_back(s);
      }
      if (prompt.sentences.empty()) continue;
      Rng rng(Hasher().add("validation").add(source.task_of(p)).digest64());
      (rng.uniform() < training.validation ? validation_ : train_).push_back(std::move(prompt));
    }
    for (const Prompt& prompt : train_) count_ += std::ssize(prompt.sentences);
  }

  int64_t sentences() const { return count_; }
  bool empty() const { return train_.empty(); }
  bool has_validation() const { return !validation_.empty(); }
  LanguageBatch batch(int64_t step) const { return make(train_, "train", step); }
  LanguageBatch validation_batch(int64_t number) const { return make(validation_, "validate", number); }

 private:
  struct Prompt {
    size_t number = 0;
    std::vector<int32_t> sentences;
  };

  LanguageBatch make(const std::vector<Prompt>& from, const char* what, int64_t number) const {
    Rng rng(Hasher().add(what).add(seed_).add(static_cast<uint64_t>(number)).digest64());
    // A prompt with many sentences is read more often, but not as often as it has more.
    std::vector<double> weights;
    for (const Prompt& prompt : from)
      weights.push_back(std::sqrt(static_cast<double>(prompt.sentences.size())));
    PositionCollector prompts, answers;
    std::vector<int64_t> tokens;
    std::vector<uint8_t> allowed;
    for (int i = 0; i < training_.prompts; ++i) {
      const Prompt& prompt = from[static_cast<size_t>(rng.weighted(weights))];
      prompts.add(source_.prompt(prompt.number));
      for (int a = 0; a < training_.answers; ++a) {
        const int32_t sentence = prompt.sentences[rng.below(prompt.sentences.size())];
        lm::WrittenAnswer answer;
        source_.write(sentence, !rng.bernoulli(training_.without_similar), answer);
        answers.add(answer.positions);
        for (size_t t = 0; t < answer.tokens.size(); ++t) {
          tokens.push_back(answer.tokens[t]);
          for (size_t o = 0; o < lm::kOutputs; ++o)
            allowed.push_back(!training_.masked || answer.allowed[t][o] ? 1 : 0);
        }
      }
    }
    LanguageBatch out;
    prompts.tensors(device_, out.prompt_entries, out.prompt_weights, out.prompt_begin, out.prompts);
    answers.tensors(device_, out.answer_entries, out.answer_weights, out.answer_begin, out.answers);
    out.tokens = torch::tensor(tokens, torch::kInt64).to(device_);
    out.allowed = torch::tensor(allowed, torch::kUInt8)
                      .view({static_cast<int64_t>(tokens.size()), lm::kOutputs})
                      .to(torch::kBool)
                      .to(device_);
    return out;
  }

  const SentenceSource& source_;
  const LanguageTraining& training_;
  uint64_t seed_;
  torch::Device device_;
  std::vector<Prompt> train_, validation_;
  int64_t count_ = 0;
};

// Nats a token.
Tensor loss_of(LanguageNet& net, const LanguageBatch& batch) {
  const Tensor scores = net->forward(batch).masked_fill(batch.allowed.logical_not(), -1e9);
  return torch::nn::functional::cross_entropy(scores, batch.tokens);
}

void copy_weights(const LanguageModel& model, LanguageNet& net) {
  const torch::NoGradGuard no_gradients;
  for (auto& [name, value] : state_of(*net)) {
    const LanguageModel::Weight& weight = model.weights.at(name);
    value.copy_(torch::from_blob(const_cast<float*>(weight.values.data()), weight.shape, torch::kFloat32));
  }
}

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
        net_(sizes_) {}

  Result<LanguageModel> run() {
    if (reader_.empty())
      return Error{ErrorCode::kInvalidArgument, "corpus", "has no sentence of the quality that is asked for"};
    if (base_ != nullptr)
      copy_weights(*base_, net_);
    else
      net_->start(control_.seed);
    net_->to(device_);
    torch::optim::AdamW optimizer(
        net_->parameters(),
        torch::optim::AdamWOptions(training_.learning_rate).weight_decay(training_.weight_decay));
    const int64_t batch = int64_t{training_.prompts} * training_.answers;
    const auto steps = std::max<int64_t>(
        1, static_cast<int64_t>(training_.epochs * static_cast<double>(reader_.sentences()) /
                                static_cast<double>(batch)));
    TrainOptions rate;
    rate.learning_rate = training_.learning_rate;
    const std::string name = training_name();
    if (!control_.checkpoint.empty()) {
      TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool found,
                          load_checkpoint(control_.checkpoint, name, state_, *net_, optimizer));
      if (control_.owns_checkpoint) control_.owns_checkpoint();
    }
    const double begin = steady_seconds();
    int64_t done = 0;
    for (; state_.step < steps; ++state_.step) {
      if (control_.stop && control_.stop()) {
        if (!control_.checkpoint.empty())
          TS_RETURN_IF_ERROR(save_checkpoint(control_.checkpoint, name, state_, *net_, optimizer));
        return Error{ErrorCode::kCancelled, "",
                     control_.checkpoint.empty()
                         ? "training was stopped"
                         : "training was stopped; it goes on from " + control_.checkpoint};
      }
      net_->train();
      const Tensor loss = loss_of(net_, reader_.batch(state_.step));
      const auto value = loss.item<double>();
      if (!std::isfinite(value))
        return Error{ErrorCode::kInvalidArgument, "step " + std::to_string(state_.step),
                     "the training loss is no longer finite; lower the learning rate"};
      optimizer.zero_grad();
      loss.backward();
      torch::nn::utils::clip_grad_norm_(net_->parameters(), 1.0);
      for (auto& group : optimizer.param_groups())
        group.options().set_lr(learning_rate_at(rate, state_.step, steps));
      optimizer.step();
      state_.loss_sum += value;
      state_.programs += 1;
      done += batch;
      if ((state_.step + 1) % kStepsAReport == 0 || state_.step + 1 == steps) report(steps, done, begin);
      if (!control_.checkpoint.empty() && (state_.step + 1) % kStepsACheckpoint == 0) {
        TrainState next = state_;
        ++next.step;
        TS_RETURN_IF_ERROR(save_checkpoint(control_.checkpoint, name, next, *net_, optimizer));
      }
    }
    return model();
  }

 private:
  std::string training_name() const {
    Hasher hasher;
    hasher.add("language model").add(source_.hash()).add(control_.seed);
    hasher.add(nlohmann::json{sizes_.width, sizes_.heads, sizes_.layers, sizes_.hidden, training_.epochs,
                              training_.learning_rate, training_.weight_decay, training_.prompts,
                              training_.answers, static_cast<int>(training_.worst), training_.unmeasured,
                              training_.without_similar, training_.masked, training_.validation}
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
    progress.train_loss = state_.loss_sum / static_cast<double>(std::max<int64_t>(1, state_.programs));
    state_.loss_sum = 0;
    state_.programs = 0;
    progress.validation_loss = validate();
    const double seconds = steady_seconds() - begin;
    progress.samples_per_second = seconds > 0 ? static_cast<double>(done) / seconds : 0;
    last_ = progress;
    if (control_.progress) control_.progress(progress);
  }

  double validate() {
    if (!reader_.has_validation()) return std::nan("");
    const torch::NoGradGuard no_gradients;
    net_->eval();
    double sum = 0;
    for (int64_t b = 0; b < kValidationBatches; ++b)
      sum += loss_of(net_, reader_.validation_batch(b)).item<double>();
    return sum / static_cast<double>(kValidationBatches);
  }

  LanguageModel model() const {
    LanguageModel out;
    out.sizes = sizes_;
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
    out.metrics = metrics.dump();
    return out;
  }

  const SentenceSource& source_;
  const LanguageTraining& training_;
  const TrainingControl& control_;
  const LanguageModel* base_;
  LanguageModelSizes sizes_;
  torch::Device device_;
  Reader reader_;
  LanguageNet net_;
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
