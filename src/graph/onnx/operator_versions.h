// The inputs, outputs and attributes that each version of the standard ONNX operators takes.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tensorsmith::graph {

// A later opset may give an operator another meaning under the same name.
inline constexpr int kNewestOpset = 28;

// The parts that a node of a model names.
struct NodeParts {
  int inputs = 0;   // up to the last one that is not omitted
  int outputs = 0;  // likewise
  std::span<const std::string_view> attributes;
};

// Returns whether the word is in this list of words, which single spaces separate.
bool has_word(std::string_view words, std::string_view word);

// Returns what the operator of this opset does not take, as the reason of an error: "Softmax of opset 13
// has no attribute 'temperature'". Empty: nothing, or the operator is none of the standard ones. An
// operator that is newer than the opset is checked as its first version, since its meaning is clear.
// Attributes whose names begin with two underscores are annotations that ONNX allows everywhere.
std::string not_taken(std::string_view op, int opset, const NodeParts& parts);

}  // namespace tensorsmith::graph
