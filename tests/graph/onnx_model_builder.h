// Small ONNX models for tests.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx/onnx_pb.h"

namespace tensorsmith::graph::testing {

class ModelBuilder {
 public:
  explicit ModelBuilder(int opset = 17) {
    model_.set_ir_version(8);
    auto* import = model_.add_opset_import();
    import->set_domain("");
    import->set_version(opset);
    model_.mutable_graph()->set_name("test");
  }

  // A dimension of -1 is named `dim_name` ("N"); one of -2 has neither value nor name.
  ModelBuilder& input(const std::string& name, const std::vector<int64_t>& shape, int data_type = 1,
                      const std::string& dim_name = "N") {
    fill(*model_.mutable_graph()->add_input(), name, shape, data_type, dim_name);
    return *this;
  }
  ModelBuilder& output(const std::string& name) {
    model_.mutable_graph()->add_output()->set_name(name);
    return *this;
  }
  ModelBuilder& initializer(const std::string& name, const std::vector<int64_t>& shape,
                            const std::vector<float>& values) {
    onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(1);
    for (int64_t extent : shape) tensor.add_dims(extent);
    for (float v : values) tensor.add_float_data(v);
    return *this;
  }
  ModelBuilder& integers(const std::string& name, const std::vector<int64_t>& values) {
    onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(7);
    tensor.add_dims(static_cast<int64_t>(values.size()));
    for (int64_t v : values) tensor.add_int64_data(v);
    return *this;
  }
  // Adds an initializer with its contents as bytes of the file.
  ModelBuilder& raw(const std::string& name, const std::vector<int64_t>& shape, int data_type,
                    const std::string& bytes) {
    onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(data_type);
    for (int64_t extent : shape) tensor.add_dims(extent);
    tensor.set_raw_data(bytes);
    return *this;
  }
  ModelBuilder& node(const std::string& op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs) {
    onnx::NodeProto& node = *model_.mutable_graph()->add_node();
    node.set_op_type(op);
    for (const std::string& name : inputs) node.add_input(name);
    for (const std::string& name : outputs) node.add_output(name);
    return *this;
  }
  // Attributes of the last node.
  ModelBuilder& ints(const std::string& name, const std::vector<int64_t>& values) {
    onnx::AttributeProto& a = attribute(name, onnx::AttributeProto::INTS);
    for (int64_t v : values) a.add_ints(v);
    return *this;
  }
  ModelBuilder& integer(const std::string& name, int64_t value) {
    attribute(name, onnx::AttributeProto::INT).set_i(value);
    return *this;
  }
  ModelBuilder& number(const std::string& name, float value) {
    attribute(name, onnx::AttributeProto::FLOAT).set_f(value);
    return *this;
  }
  ModelBuilder& text(const std::string& name, const std::string& value) {
    attribute(name, onnx::AttributeProto::STRING).set_s(value);
    return *this;
  }

  // Adds a subgraph attribute with the body's inputs, nodes and outputs.
  ModelBuilder& graph(const std::string& name, const ModelBuilder& body) {
    *attribute(name, onnx::AttributeProto::GRAPH).mutable_g() = body.model_.graph();
    return *this;
  }
  // Sets the domain of the last node.
  ModelBuilder& domain(const std::string& name) {
    onnx::GraphProto& graph = *model_.mutable_graph();
    graph.mutable_node(graph.node_size() - 1)->set_domain(name);
    return *this;
  }

  onnx::ModelProto& proto() { return model_; }
  std::string bytes() const {
    std::string result;
    model_.SerializePartialToString(&result);
    return result;
  }
  Result<Graph> import(const ImportOptions& options = {}) const {
    return import_onnx_bytes(bytes(), options, "test.onnx");
  }

 private:
  static void fill(onnx::ValueInfoProto& info, const std::string& name, const std::vector<int64_t>& shape,
                   int data_type, const std::string& dim_name) {
    info.set_name(name);
    auto* type = info.mutable_type()->mutable_tensor_type();
    type->set_elem_type(data_type);
    type->mutable_shape();
    for (int64_t extent : shape) {
      auto* dim = type->mutable_shape()->add_dim();
      if (extent >= 0) dim->set_dim_value(extent);
      if (extent == -1) dim->set_dim_param(dim_name);
    }
  }
  onnx::AttributeProto& attribute(const std::string& name, onnx::AttributeProto::AttributeType type) {
    onnx::GraphProto& graph = *model_.mutable_graph();
    onnx::AttributeProto& a = *graph.mutable_node(graph.node_size() - 1)->add_attribute();
    a.set_name(name);
    a.set_type(type);
    return a;
  }

  onnx::ModelProto model_;
};

}  // namespace tensorsmith::graph::testing
