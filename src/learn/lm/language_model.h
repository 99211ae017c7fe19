// A trained language model: a small decoder-only transformer (pre-norm, as GPT-2) as plain numbers. Training is in
// learn/net, decoding in engine; neither is needed to read the file.
//
// A position's vector is the weighted sum of its features' embeddings. The positions of a prompt see each other, those of
// an answer the prompt and what is before them. Each layer: x += out(attention(norm1(x))), x += down(relu(up(norm2(x)))).
// Scores of tokens: output(norm(x)).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "learn/lm/prompt.h"

namespace tensorsmith::learn::lm {

inline constexpr int kLanguageModelVersion = 2;

struct LanguageModelSizes {
  int width = 128;
  int heads = 4;  // divides width
  int layers = 4;
  int hidden = 512;  // of the feed-forward layers
  friend bool operator==(const LanguageModelSizes&, const LanguageModelSizes&) = default;
};

struct LanguageModel {
  struct Weight {
    std::vector<int64_t> shape;
    std::vector<float> values;  // row-major
  };

  LanguageModelSizes sizes;
  PromptOptions prompting;  // how the prompts that it was trained on are made; it can read no others
  std::map<std::string, Weight> weights;  // as weight_shapes() lists them
  // What it is and has seen; kept in its file.
  std::vector<std::string> tasks;  // keys, ascending
  std::vector<std::string> devices;
  std::string command;  // that made it
  std::string metrics;  // JSON object: of training and validation
  int64_t sentences = 0;
  uint64_t seed = 0;

  int64_t parameters() const;
};

// Names and shapes of the weights: "embedding" [kFeatures, width], "layer.0.qkv.weight" [3 * width, width], ...
std::map<std::string, std::vector<int64_t>> weight_shapes(const LanguageModelSizes& sizes);

// Replaces the file at once or not at all.
Status write_language_model(const LanguageModel& model, const std::string& path);
// kCorrupt for what is damaged or no language model, kMismatch for one of another version.
Result<LanguageModel> read_language_model(const std::string& path);

}  // namespace tensorsmith::learn::lm
