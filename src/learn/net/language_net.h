// The language model in libtorch; learn/lm/language_model.h describes the computation. Internal to
// learn/net.
#pragma once

#include <torch/nn.h>

#include "learn/lm/language_model.h"
#include "learn/net/layers.h"

namespace tensorsmith::learn::net {

// A batch as tensors, with the same number of answers for each prompt.
struct LanguageBatch {
  Tensor prompt_entries, prompt_weights,
      prompt_begin;  // features of all positions, and index of each position's first feature
  Tensor answer_entries, answer_weights, answer_begin;
  Ragged prompts;  // positions by prompt
  Ragged answers;  // positions by answer; the answers are grouped by prompt
  Tensor tokens;   // [answer positions] int64
  Tensor allowed;  // [answer positions, kOutputs] bool
};
class LanguageNetImpl : public torch::nn::Module {
 public:
  explicit LanguageNetImpl(const lm::LanguageModelSizes& sizes);

  // Sets the weights: start() from the seed, copy() from a model of the same sizes.
  void start(uint64_t seed);
  void copy(const lm::LanguageModel& model);

  // Returns the scores of the tokens at each position of an answer, [answer positions, kOutputs];
  // those of tokens that are not allowed are very low.
  Tensor forward(const LanguageBatch& batch);

 private:
  Tensor embed(const Tensor& entries, const Tensor& weights, const Tensor& begin);

  Tensor embedding_;
  torch::nn::ModuleList layers_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear output_{nullptr};
};
TORCH_MODULE(LanguageNet);

}  // namespace tensorsmith::learn::net
