// Networks as ONNX models.
#pragma once

#include <string>

#include "base/result.h"
#include "graph/zoo/network.h"

namespace tensorsmith::graph::zoo {

// Draws the weights, each from its own stream of the seed and its name, and serializes. kResourceExhausted:
// larger than the 2 GiB that a Protobuf message can have.
Result<std::string> serialize(const Network& network, uint64_t seed);

}  // namespace tensorsmith::graph::zoo
