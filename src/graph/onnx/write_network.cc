#include <cmath>
#include <cstring>
#include <limits>

#include "base/hash.h"
#include "base/rng.h"
#include "graph/zoo/write.h"
#include "onnx/onnx_pb.h"

namespace tensorsmith::graph::zoo {
namespace {

constexpr int64_t kIrVersion = 8;
constexpr int64_t kOpset = 17;

void set_port(onnx::ValueInfoProto& info, const Port& port) {
  info.set_name(port.name);
  auto* type = info.mutable_type()->mutable_tensor_type();
  type->set_elem_type(port.tokens ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT);
  for (int64_t extent : port.shape) type->mutable_shape()->add_dim()->set_dim_value(extent);
}

onnx::TensorProto& add_initializer(onnx::GraphProto& graph, const std::string& name, const Shape& shape,
                                   onnx::TensorProto::DataType type) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (int64_t extent : shape) tensor.add_dims(extent);
  return tensor;
}

int64_t elements(const Shape& shape) {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

// Draws from a uniform and not a normal distribution: no outliers, and cheap for 10^8 values.
void draw(const Weight& weight, uint64_t seed, std::string& bytes) {
  Rng rng(Hasher().add(seed).add(weight.name).digest64());
  const double low = weight.mean - std::sqrt(3.0) * weight.deviation;
  const double width = 2 * std::sqrt(3.0) * weight.deviation;
  bytes.resize(elements(weight.shape) * sizeof(float));
  for (size_t at = 0; at < bytes.size(); at += sizeof(float)) {
    const float value = low + width * rng.uniform();
    std::memcpy(bytes.data() + at, &value, sizeof(float));
  }
}

void add_attribute(onnx::NodeProto& node, const std::string& name, const AttributeValue& value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(*integer);
  } else if (const auto* number = std::get_if<float>(&value)) {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(*number);
  } else {
    attribute.set_type(onnx::AttributeProto::INTS);
    for (int64_t i : std::get<Shape>(value)) attribute.add_ints(i);
  }
}

}  // namespace

Result<std::string> serialize(const Network& network, uint64_t seed) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("tensorsmith");
  auto* opset = model.add_opset_import();
  opset->set_domain("");
  opset->set_version(kOpset);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name(network.name);
  for (const Port& port : network.inputs) set_port(*graph.add_input(), port);
  for (const Port& port : network.outputs) set_port(*graph.add_output(), port);
  for (const Operation& operation : network.operations) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(operation.op);
    node.set_name(operation.name);
    for (const std::string& input : operation.inputs) node.add_input(input);
    for (const std::string& output : operation.outputs) node.add_output(output);
    for (const auto& [name, value] : operation.attributes) add_attribute(node, name, value);
  }
  for (const Integers& integers : network.integers) {
    auto& tensor = add_initializer(graph, integers.name, integers.shape, onnx::TensorProto::INT64);
    tensor.set_raw_data(integers.values.data(), integers.values.size() * sizeof(int64_t));
  }
  for (const Weight& weight : network.weights) {
    auto& tensor = add_initializer(graph, weight.name, weight.shape, onnx::TensorProto::FLOAT);
    if (weight.values.empty()) {
      draw(weight, seed, *tensor.mutable_raw_data());
    } else {
      tensor.set_raw_data(weight.values.data(), weight.values.size() * sizeof(float));
    }
  }
  const size_t bytes = model.ByteSizeLong();
  if (bytes > std::numeric_limits<int>::max()) {
    return Error{ErrorCode::kResourceExhausted, "network '" + network.name + "'",
                 "would have " + std::to_string(bytes) + " bytes; an ONNX file has at most 2 GiB"};
  }
  return model.SerializeAsString();
}

}  // namespace tensorsmith::graph::zoo
