// The network zoo: well-known architectures with seeded random weights, for any batch and input size. What a
// tuner and a cost model see of a network is its shapes; trained weights would change neither tasks nor
// latencies.
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
// In the order of families.
std::span<const Entry> entries();

// Which network, at which size.
struct Request {
  std::string name;
  int64_t batch = 1;
  int64_t size = 0;      // image side in pixels; 0 = the usual one; images only
  int64_t sequence = 0;  // tokens; 0 = the usual number; token networks only
  uint64_t seed = 0;     // of the weights
};
// "resnet50", "resnet50:batch=4:size=256", "bert_base:sequence=64:seed=1". Errors: kInvalidArgument.
Result<Request> parse_request(std::string_view spec);

// All of the following fail with kNotFound for an unknown network (the error lists the names) and with
// kInvalidArgument for a size that the network cannot have.

// Trainable parameters, as published: no running statistics and no tables.
Result<int64_t> parameters(const Request& request);
// A serialized ONNX model (opset 17, f32). kResourceExhausted: larger than ONNX's 2 GiB.
Result<std::string> to_onnx(const Request& request);
Status export_onnx(const Request& request, const std::string& path);
// The graph that importing the exported model gives.
Result<Graph> import(const Request& request);

}  // namespace tensorsmith::graph::zoo
