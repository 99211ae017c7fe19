// TensorProto <-> Tensor. Only files in this folder include this header, because it exposes
// protobuf.
#pragma once

#include <string>

#include "graph/graph.h"
#include "graph/onnx/wire.h"
#include "onnx/onnx_pb.h"

namespace tensorsmith::graph {

// Location of external tensor data, and how much may be read in total.
struct TensorSource {
  std::string directory;  // folder of the model; empty if there is none (external data is an error then)
  // Folder that actually contains the model's file: another folder if its name is a symlink, as in
  // caches that name files by their hashes. External data may be there, too.
  std::string real_directory;
  bool has_directory = false;
  int64_t bytes_left = int64_t{8} << 30;
};

// Errors have the tensor as their place.
Result<lower::Tensor> tensor_from_proto(const onnx::TensorProto& proto, TensorSource& source);

// Returns the node's name, or its operator if it has none.
std::string name_of(const onnx::NodeProto& proto);

// Make a tensor of rank 0, and one of rank 1 and type i64.
lower::Tensor scalar(ir::DType dtype, int64_t value);
lower::Tensor vector(const std::vector<int64_t>& values);

// Parses messages that check_wire() accepts. Errors without a place: kCorrupt if the bytes are no
// such message, kResourceExhausted.
Status parse_message(std::string_view bytes, WireMessage kind, google::protobuf::MessageLite& message);

}  // namespace tensorsmith::graph
