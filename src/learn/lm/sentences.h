// Sentences that a language model learns from: for each prompt a number of answers.
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

// An answer as a model learns it: what it reads before each token, the token, and which tokens are allowed there.
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
  virtual const PromptOptions& prompting() const = 0;           // how all prompts are made
  virtual const std::string& task_of(size_t prompt) const = 0;  // its key
  // Numbers of the sentences of a prompt.
  virtual std::span<const int32_t> sentences_of(size_t prompt) const = 0;
  virtual Quality quality_of(int32_t sentence) const = 0;
  // quality: what the answer is read as. similar: whether the answer may see fast programs of similar tasks.
  virtual void write(int32_t sentence, Quality quality, bool similar, WrittenAnswer& out) const = 0;
  // Of all contents, for checkpoints and cards.
  virtual std::string hash() const = 0;
  // Keys of the tasks, ascending, and names of the devices.
  virtual std::vector<std::string> tasks() const = 0;
  virtual std::vector<std::string> devices() const = 0;
};

}  // namespace tensorsmith::learn::lm
