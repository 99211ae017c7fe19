// Sentences as batches of tensors. Internal to learn/net.
#pragma once

#include <vector>

#include "base/rng.h"
#include "learn/lm/language_training.h"
#include "learn/net/language_net.h"

namespace tensorsmith::learn::net {

// Which sentences are read, by prompt, and batches of them: the same for the same seed and number. Where preferences are
// learned, answers come in pairs, the better one first.
class LanguageReader {
 public:
  // The arguments outlive it.
  LanguageReader(const lm::SentenceSource& source, const lm::LanguageTraining& training, uint64_t seed,
                 torch::Device device);

  int64_t sentences() const { return count_; }  // that are learned from, without the worse ones of pairs
  bool empty() const { return train_.empty(); }
  bool has_validation() const { return !validation_.empty(); }
  // Sentences of a batch that count.
  int64_t batch_size() const { return int64_t{training_.prompts} * draws_; }
  LanguageBatch batch(int64_t step) const { return make(train_, "train", step); }
  LanguageBatch validation_batch(int64_t number) const { return make(validation_, "validate", number); }

 private:
  struct Prompt {
    size_t number = 0;
    std::vector<int32_t> sentences;
    size_t drawn =
        0;  // of the sentences, the first ones: those that may be drawn, alone or as the better of a pair
  };
  struct Read {
    int32_t sentence = 0;
    lm::Quality quality = lm::Quality::kBest;  // as what it is read
    bool similar = false;
  };

  // The sentences of a prompt that count; none: it is not read.
  Prompt choose(size_t number) const;
  Read draw(const Prompt& prompt, Rng& rng) const;
  // One that is worse, of the same prompt, and read as if it were as good.
  Read draw_worse(const Prompt& prompt, const Read& better, Rng& rng) const;
  LanguageBatch make(const std::vector<Prompt>& from, const char* what, int64_t number) const;

  const lm::SentenceSource& source_;
  const lm::LanguageTraining& training_;
  uint64_t seed_;
  torch::Device device_;
  bool pairs_;
  int draws_;  // of each prompt of a batch
  std::vector<Prompt> train_, validation_;
  int64_t count_ = 0;
};

}  // namespace tensorsmith::learn::net
