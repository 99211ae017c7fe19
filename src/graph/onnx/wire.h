// Bounds the memory of a protobuf message before it is parsed: two bytes of a file may become a
// message that takes hundreds of bytes in memory.
#pragma once

#include <string_view>

#include "base/result.h"

namespace tensorsmith::graph {

enum class WireMessage { kModel, kTensor };

// Traverses the fields of ONNX's messages without building them. Errors, with an empty place:
// kCorrupt if the bytes are no such message or nest deeper than kMaxWireNesting; kResourceExhausted
// if the parsed form would take more than kMaxWireBytes in addition to the bytes themselves.
inline constexpr int kMaxWireNesting = 64;
inline constexpr int64_t kMaxWireBytes = int64_t{4} << 30;
Status check_wire(std::string_view bytes, WireMessage root);

}  // namespace tensorsmith::graph
