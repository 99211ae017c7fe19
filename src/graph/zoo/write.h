// Writes networks as ONNX models.
#pragma once

#include <string>

#include "base/result.h"
#include "graph/zoo/network.h"

namespace tensorsmith::graph::zoo {

// Draws the weights, each from a random stream of the seed and its name, and serializes the model.
// Returns kResourceExhausted if it is larger than 2 GiB, the limit of a Protobuf message.
Result<std::string> serialize(const Network& network, uint64_t seed);

}  // namespace tensorsmith::graph::zoo
