// A trained language model: the weights of a small decoder-only transformer (pre-norm, as GPT-2).
// It is trained in learn/net and decoded in engine; neither is needed to read the file.
//
// The vector of a position is the weighted sum of its features' embeddings. Positions of a prompt
// attend to each other; those of an answer attend to the prompt and to earlier positions. Each
// layer computes x += out(attention(norm1(x))), x += down(relu(up(norm2(x)))). The scores of the
// tokens are output(norm(x)).
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
  int heads = 4;  // must divide width
  int layers = 4;
  int hidden = 512;  // width of the feed-forward layers
  friend bool operator==(const LanguageModelSizes&, const LanguageModelSizes&) = default;
};

struct LanguageModel {
  struct Weight {
    std::vector<int64_t> shape;
    std::vector<float> values;  // row-major
  };

  LanguageModelSizes sizes;
  PromptOptions prompting;                // format of the prompts in its training; it can read no others
  std::map<std::string, Weight> weights;  // keys as in weight_shapes()
  // Description of the model and its training data; stored in its file.
  std::vector<std::string> tasks;  // keys, ascending
  std::vector<std::string> devices;
  std::string command;  // the command that made the model
  std::string metrics;  // JSON object with the metrics of training and validation
  int64_t sentences = 0;
  uint64_t seed = 0;

  int64_t parameters() const;
};

// Returns names and shapes of the weights: "embedding" [kFeatures, width], "layer.0.qkv.weight" [3
// * width, width], ...
std::map<std::string, std::vector<int64_t>> weight_shapes(const LanguageModelSizes& sizes);

// Replaces the file atomically.
Status write_language_model(const LanguageModel& model, const std::string& path);
// kCorrupt for a damaged file or one that is no language model; kMismatch for another version.
Result<LanguageModel> read_language_model(const std::string& path);

}  // namespace tensorsmith::learn::lm
