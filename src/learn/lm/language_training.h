// Training of a language model on sentences, by libtorch (learn/net).
#pragma once

#include <cstdint>

#include "learn/lm/language_model.h"
#include "learn/lm/sentences.h"
#include "learn/training.h"

namespace tensorsmith::learn::lm {

struct LanguageTraining {
  LanguageModelSizes sizes;     // of a model that is trained from nothing
  double epochs = 4;            // times that each sentence is read, about
  double learning_rate = 1e-3;  // the highest; up over the first tenth, then down a half cosine to nothing
  double weight_decay = 1e-2;
  int prompts = 8, answers = 16;  // of a batch: so many answers of each of so many prompts
  // The worst sentences that are read, among the measured ones; and whether the others are.
  Quality worst = Quality::kSlow;
  bool unmeasured = true;
  // How often an answer is read without what similar tasks have.
  double without_similar = 0.3;
  // Whether tokens that are not allowed count for nothing (an ablation if not).
  bool masked = true;
  // Above 0: which of two measured programs of a prompt is better is learned, too, by direct preference optimization with this
  // beta. The better one is no worse than `worst`; both are read as the best, so that nothing that is read tells them apart.
  double preference = 0;
  // Whether matrices are multiplied as bfloat16. Weights and what is added up stay float32.
  bool mixed_precision = false;
  // Of the tasks, the share that is kept for validation.
  double validation = 0.05;
};

// base: the model to go on from, null: none, and preferences are not learned. control.progress: train_loss and validation_loss are nats a token. kCancelled
// when control.stop says so, after a checkpoint. kMismatch for sentences with other prompts than the base's. kNotFound or
// kUnsupported without libtorch.
Result<LanguageModel> train_language_model(const SentenceSource& sentences, const LanguageTraining& training,
                                           const LanguageModel* base, const TrainingControl& control);

}  // namespace tensorsmith::learn::lm
