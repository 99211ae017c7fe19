#include "graph/onnx/operator_versions.h"

#include <algorithm>
#include <iterator>

namespace tensorsmith::graph {

namespace {

// A version of an operator; the same form of several versions has one row.
struct OperatorVersion {
  std::string_view op;
  int opset = 0;                // the first with this form
  int inputs = 0;               // at most; -1: any number
  int outputs = 0;              // likewise
  std::string_view attributes;  // names, separated by spaces
};

// Sorted by operator and opset.
constexpr OperatorVersion kVersions[] = {
#include "graph/onnx/operator_versions.inc"
};

// Returns the newest version that is not newer than the opset, else the oldest; null for an unknown operator.
const OperatorVersion* find_version(std::string_view op, int opset) {
  const auto all = std::ranges::equal_range(kVersions, op, {}, &OperatorVersion::op);
  const OperatorVersion* found = nullptr;
  for (const OperatorVersion& version : all)
    if (found == nullptr || version.opset <= opset) found = &version;
  return found;
}

std::string number_of(int n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

}  // namespace

bool has_word(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

std::string not_taken(std::string_view op, int opset, const NodeParts& parts) {
  const OperatorVersion* version = find_version(op, opset);
  if (version == nullptr) return {};
  const std::string name = std::string(op) + " of opset " + std::to_string(opset);
  const auto too_many = [&](int most, int given, const std::string& noun) {
    return name + " has at most " + number_of(most, noun) + ", the node has " + std::to_string(given);
  };
  if (version->inputs >= 0 && parts.inputs > version->inputs)
    return too_many(version->inputs, parts.inputs, "input");
  if (version->outputs >= 0 && parts.outputs > version->outputs)
    return too_many(version->outputs, parts.outputs, "output");
  for (const std::string_view attribute : parts.attributes) {
    if (attribute.starts_with("__") || has_word(version->attributes, attribute)) continue;
    return name + " has no attribute '" + std::string(attribute) + "'";
  }
  return {};
}

}  // namespace tensorsmith::graph
