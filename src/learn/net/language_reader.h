// Reads sentences as batches of tensors. Internal to learn/net.
#pragma once

#include <vector>

#include "base/rng.h"
#include "learn/lm/language_training.h"
#include "learn/net/language_net.h"

namespace tensorsmith::learn::net {

// Selects the sentences to read for each prompt and makes batches of them, which depend only on the
// seed and the number of the batch. If preferences are learned, answers come in pairs, the better
// one first.
class LanguageReader {
 public:
  // The arguments must outlive the reader.
  LanguageReader(const lm::SentenceSource& source, const lm::LanguageTraining& training, uint64_t seed,
                 torch::Device device);

  // Sentences to learn from, not counting the worse ones of pairs.
  int64_t sentences() const { return count_; }
  bool empty() const { return train_.empty(); }
  bool has_validation() const { return !validation_.empty(); }
  // Number of drawn sentences in a batch; of pairs, only the better ones count.
  int64_t batch_size() const { return int64_t{training_.prompts} * draws_; }
  LanguageBatch batch(int64_t step) const { return make(train_, "train", step); }
  LanguageBatch validation_batch(int64_t number) const { return make(validation_, "validate", number); }

 private:
  struct Prompt {
    size_t number = 0;
    std::vector<int32_t> sentences;
    size_t drawn = 0;  // number of leading sentences that may be drawn, alone or as the better of a pair
  };
  struct Read {
    int32_t sentence = 0;
    lm::Quality quality = lm::Quality::kBest;  // the quality level it is read with
    bool similar = false;
  };

  // Selects the sentences of a prompt; if there are none, the prompt is not read.
  Prompt choose(size_t number) const;
  Read draw(const Prompt& prompt, Rng& rng) const;
  // Draws a worse sentence of the same prompt, to be read with the same quality level as the better
  // one.
  Read draw_worse(const Prompt& prompt, const Read& better, Rng& rng) const;
  LanguageBatch make(const std::vector<Prompt>& from, const char* what, int64_t number) const;

  const lm::SentenceSource& source_;
  const lm::LanguageTraining& training_;
  uint64_t seed_;
  torch::Device device_;
  bool pairs_;
  int draws_;  // for each prompt of a batch
  std::vector<Prompt> train_, validation_;
  int64_t count_ = 0;
};

}  // namespace tensorsmith::learn::net
