// The network zoo: well-known architectures with seeded random weights, for any batch and input
// size. A tuner and a cost model depend only on a network's shapes; trained weights would change
// neither tasks nor latencies.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/graph.h"

namespace tensorsmith::graph::zoo {

enum class InputKind : uint8_t { kImage, kTokens };

struct Entry {
  std::string_view name;
  std::string_view description;
  InputKind kind = InputKind::kImage;
  int64_t extent = 0;  // usual image side in pixels, or sequence length in tokens
};
// All networks, in the order of families.
std::span<const Entry> entries();

// Specifies a network and its size.
struct Request {
  std::string name;
  int64_t batch = 1;
  int64_t size = 0;      // image side in pixels; 0 = the usual one; images only
  int64_t sequence = 0;  // tokens; 0 = the usual number; token networks only
  uint64_t seed = 0;     // seed of the weights
};
// Parses "resnet50", "resnet50:batch=4:size=256", "bert_base:sequence=64:seed=1". Errors:
// kInvalidArgument.
Result<Request> parse_request(std::string_view spec);

// The following functions fail with kNotFound for an unknown network (the error lists the names)
// and with kInvalidArgument for a size that the network cannot have.

// Returns the number of trainable parameters, as published: without running statistics and tables.
Result<int64_t> parameters(const Request& request);
// Returns a serialized ONNX model (opset 17, f32). Returns kResourceExhausted if it is larger than
// ONNX's 2 GiB.
Result<std::string> to_onnx(const Request& request);
Status export_onnx(const Request& request, const std::string& path);
// Returns the graph that importing the exported model gives.
Result<Graph> import(const Request& request);

}  // namespace tensorsmith::graph::zoo
