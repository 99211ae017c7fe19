// TensorProto <-> Tensor. Only files in this folder include this: it shows protobuf.
#pragma once

#include <string>

#include "graph/graph.h"
#include "graph/onnx/wire.h"
#include "onnx/onnx_pb.h"

namespace tensorsmith::graph {

// Where external tensor data lies and how much may be read in all.
struct TensorSource {
  std::string directory;  // of the model; empty if there is none (external data is an error then)
  // Where the model's file itself lies: another folder if its name is a symlink, as in caches that keep files
  // under their hashes. External data may be there, too.
  std::string real_directory;
  bool has_directory = false;
  int64_t bytes_left = int64_t{8} << 30;
};

// Errors name the tensor in place.
Result<lower::Tensor> tensor_from_proto(const onnx::TensorProto& proto, TensorSource& source);

// The node's name, or its operator where it has none.
std::string name_of(const onnx::NodeProto& proto);

// A tensor of rank 0, and one of rank 1 and type i64.
lower::Tensor scalar(ir::DType dtype, int64_t value);
lower::Tensor vector(const std::vector<int64_t>& values);

// Parses what check_wire() accepts. Errors without a place: kCorrupt if the bytes are no such message,
// kResourceExhausted.
Status parse_message(std::string_view bytes, WireMessage kind, google::protobuf::MessageLite& message);

}  // namespace tensorsmith::graph
