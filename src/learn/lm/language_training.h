// Training of a language model on sentences, with libtorch (learn/net).
#pragma once

#include <cstdint>

#include "learn/lm/language_model.h"
#include "learn/lm/sentences.h"
#include "learn/training.h"

namespace tensorsmith::learn::lm {

struct LanguageTraining {
  LanguageModelSizes sizes;     // used only without a base model
  double epochs = 4;            // mean number of times that each sentence is read
  double learning_rate = 1e-3;  // maximum; linear warm-up over the first tenth, then half a cosine down to 0
  double weight_decay = 1e-2;
  int prompts = 8, answers = 16;  // size of a batch: number of prompts, and of answers for each
  // worst: lowest quality of the measured sentences that are read. unmeasured: whether to read
  // sentences of unmeasured programs.
  Quality worst = Quality::kSlow;
  bool unmeasured = true;
  // Share of answers that are read without the programs of similar tasks.
  double without_similar = 0.3;
  // Whether tokens that the grammar does not allow are left out of the loss (false: ablation).
  bool masked = true;
  // If above 0, the model also learns which of two measured programs of a prompt is better, by
  // direct preference optimization with this beta. The better program has at least the quality
  // `worst`. Both are read with the best quality level, so that no input distinguishes them.
  double preference = 0;
  // Whether matrices are multiplied in bfloat16. Weights and accumulators stay float32.
  bool mixed_precision = false;
  // Share of the tasks that is kept for validation.
  double validation = 0.05;
};

// base: the model to continue from; without one (null), preferences are not learned.
// control.progress: losses are in nats per token. Errors: kCancelled if control.stop returns true,
// after a checkpoint; kMismatch if the prompts of the sentences have another format than those of
// the base; kNotFound or kUnsupported without libtorch.
Result<LanguageModel> train_language_model(const SentenceSource& sentences, const LanguageTraining& training,
                                           const LanguageModel* base, const TrainingControl& control);

}  // namespace tensorsmith::learn::lm
