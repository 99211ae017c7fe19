// The sentences that a language model learns from: several answers for each prompt.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "learn/lm/answer.h"
#include "learn/lm/prompt.h"

namespace tensorsmith::learn::lm {

using TokenMask = std::bitset<kOutputs>;

// An answer in the form used for training: the position read before each token, the token itself,
// and which tokens are allowed there.
struct WrittenAnswer {
  Positions positions;
  std::vector<uint8_t> tokens;
  std::vector<TokenMask> allowed;
};

class SentenceSource {
 public:
  virtual ~SentenceSource() = default;
  virtual size_t prompts() const = 0;
  virtual const Positions& prompt(size_t number) const = 0;
  virtual const PromptOptions& prompting() const = 0;           // the format of all prompts
  virtual const std::string& task_of(size_t prompt) const = 0;  // the task's key
  // Returns the numbers of the sentences for a prompt.
  virtual std::span<const int32_t> sentences_of(size_t prompt) const = 0;
  virtual Quality quality_of(int32_t sentence) const = 0;
  // quality: the quality level that the answer is read with. similar: whether the answer may attend
  // to fast programs of similar tasks.
  virtual void write(int32_t sentence, Quality quality, bool similar, WrittenAnswer& out) const = 0;
  // Hash of all contents, for checkpoints and cards.
  virtual std::string hash() const = 0;
  // Keys of the tasks in ascending order, and names of the devices.
  virtual std::vector<std::string> tasks() const = 0;
  virtual std::vector<std::string> devices() const = 0;
};

}  // namespace tensorsmith::learn::lm
