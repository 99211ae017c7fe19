#include "learn/net/language_net.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

#include "learn/net/checkpoint.h"

namespace tensorsmith::learn::net {

namespace {

constexpr double kMaskedScore = -1e9;  // becomes 0 in a softmax

torch::nn::LayerNorm make_norm(int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

class LanguageLayerImpl : public torch::nn::Module {
 public:
  explicit LanguageLayerImpl(const lm::LanguageModelSizes& sizes) : heads_(sizes.heads) {
    norm1_ = register_module("norm1", make_norm(sizes.width));
    norm2_ = register_module("norm2", make_norm(sizes.width));
    qkv_ = register_module("qkv", torch::nn::Linear(sizes.width, 3 * sizes.width));
    out_ = register_module("out", torch::nn::Linear(sizes.width, sizes.width));
    up_ = register_module("up", torch::nn::Linear(sizes.width, sizes.hidden));
    down_ = register_module("down", torch::nn::Linear(sizes.hidden, sizes.width));
  }

  // prompt: [prompts, longest prompt, width]; absent: [prompts, longest prompt], true for padding;
  // answer: [prompts, answers, longest answer, width]; later: [longest answer, longest answer],
  // true where attention is masked.
  void forward(Tensor& prompt, const Tensor& absent, Tensor& answer, const Tensor& later) {
    const int64_t g = prompt.size(0), p = prompt.size(1), width = prompt.size(2);
    const int64_t m = answer.size(1), t = answer.size(2), size = width / heads_;
    const double scale = 1 / std::sqrt(size);
    // [3, prompts, heads, positions, size]
    const Tensor of_prompt = qkv_(norm1_(prompt)).view({g, p, 3, heads_, size}).permute({2, 0, 3, 1, 4});
    // [3, prompts, answers, heads, positions, size]
    const Tensor of_answer =
        qkv_(norm1_(answer)).view({g, m, t, 3, heads_, size}).permute({3, 0, 1, 4, 2, 5}).contiguous();
    const Tensor hidden = absent.view({g, 1, 1, p});
    const Tensor among =
        torch::matmul(of_prompt[0] * scale, of_prompt[1].transpose(2, 3)).masked_fill(hidden, kMaskedScore);
    const Tensor mixed = torch::matmul(among.softmax(-1, torch::kFloat32), of_prompt[2])
                             .permute({0, 2, 1, 3})
                             .reshape({g, p, width});
    const Tensor q = of_answer[0] * scale;
    // The queries of all answers to a prompt are multiplied with the prompt's keys together:
    // [prompts, heads, answers * positions, ...].
    const Tensor all = q.permute({0, 2, 1, 3, 4}).reshape({g, heads_, m * t, size});
    const Tensor before = torch::matmul(all, of_prompt[1].transpose(2, 3))
                              .masked_fill(hidden, kMaskedScore)
                              .view({g, heads_, m, t, p});
    const Tensor own = torch::matmul(q, of_answer[1].transpose(3, 4))
                           .masked_fill(later, kMaskedScore)
                           .permute({0, 2, 1, 3, 4});
    const Tensor weights = torch::cat({before, own}, -1).softmax(-1, torch::kFloat32);
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
}  // namespace

LanguageNetImpl::LanguageNetImpl(const lm::LanguageModelSizes& sizes) {
  embedding_ = register_parameter("embedding", torch::zeros({lm::kFeatures, sizes.width}));
  layers_ = register_module("layer", torch::nn::ModuleList());
  for (int l = 0; l < sizes.layers; ++l) layers_->push_back(LanguageLayer(sizes));
  norm_ = register_module("norm", make_norm(sizes.width));
  output_ = register_module("output", torch::nn::Linear(sizes.width, lm::kOutputs));
}

void LanguageNetImpl::start(uint64_t seed) {
  initialize(*this, seed);
  const torch::NoGradGuard no_gradients;
  at::Generator generator = at::detail::createCPUGenerator(seed + 1);
  embedding_.normal_(0, 0.05, generator);
}

void LanguageNetImpl::copy(const lm::LanguageModel& model) {
  const torch::NoGradGuard no_gradients;
  for (auto& [name, value] : state_of(*this)) {
    const lm::LanguageModel::Weight& weight = model.weights.at(name);
    value.copy_(torch::from_blob(const_cast<float*>(weight.values.data()), weight.shape, torch::kFloat32));
  }
}

Tensor LanguageNetImpl::forward(const LanguageBatch& batch) {
  Tensor prompt = pad(embed(batch.prompt_entries, batch.prompt_weights, batch.prompt_begin), batch.prompts);
  const Tensor rows =
      pad(embed(batch.answer_entries, batch.answer_weights, batch.answer_begin), batch.answers);
  Tensor answer = rows.view({prompt.size(0), rows.size(0) / prompt.size(0), rows.size(1), rows.size(2)});
  const Tensor absent = batch.prompts.mask.logical_not();
  const int64_t t = answer.size(2);
  const Tensor later =
      torch::ones({t, t}, torch::TensorOptions(torch::kBool).device(prompt.device())).triu(1);
  for (const auto& layer : *layers_) layer->as<LanguageLayerImpl>()->forward(prompt, absent, answer, later);
  const Tensor scores = output_(norm_(unpad(answer.reshape({-1, t, answer.size(3)}), batch.answers)));
  return scores.masked_fill(batch.allowed.logical_not(), kMaskedScore);
}

Tensor LanguageNetImpl::embed(const Tensor& entries, const Tensor& weights, const Tensor& begin) {
  return std::get<0>(torch::embedding_bag(embedding_, entries, begin, false, 0, false, weights));
}

}  // namespace tensorsmith::learn::net
