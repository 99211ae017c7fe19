#include "graph/onnx/declared.h"

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/input_file.h"
#include "graph/onnx/importer.h"
#include "graph/ops/op_context.h"

namespace tensorsmith::graph {
namespace {

DeclaredTensor declared(const onnx::ValueInfoProto& value) {
  DeclaredTensor tensor;
  tensor.name = value.name();
  if (!value.type().has_tensor_type()) return tensor;
  const auto& type = value.type().tensor_type();
  tensor.dtype = onnx_dtype(type.elem_type());
  if (!type.has_shape()) return tensor;
  tensor.shape.emplace();
  for (const auto& dim : type.shape().dim()) {
    if (dim.has_dim_value() && dim.dim_value() >= 0)
      tensor.shape->push_back({dim.dim_value(), {}});
    else
      tensor.shape->push_back({-1, dim.dim_param()});
  }
  return tensor;
}

// Collects the files that contain data of any tensor in the model.
class ExternalFiles {
 public:
  void add(const onnx::GraphProto& graph) {
    for (const auto& tensor : graph.initializer()) add(tensor);
    for (const auto& tensor : graph.sparse_initializer()) add(tensor);
    for (const auto& node : graph.node()) add(node);
  }
  void add(const onnx::NodeProto& node) {
    for (const auto& attribute : node.attribute()) {
      add(attribute.t());
      add(attribute.sparse_tensor());
      for (const auto& tensor : attribute.tensors()) add(tensor);
      for (const auto& tensor : attribute.sparse_tensors()) add(tensor);
      if (attribute.has_g()) add(attribute.g());
      for (const auto& graph : attribute.graphs()) add(graph);
    }
  }
  std::vector<std::string> sorted() const { return {files_.begin(), files_.end()}; }

 private:
  void add(const onnx::SparseTensorProto& tensor) {
    add(tensor.values());
    add(tensor.indices());
  }
  void add(const onnx::TensorProto& tensor) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
    for (const auto& entry : tensor.external_data())
      if (entry.key() == "location") files_.insert(entry.value());
  }

  std::set<std::string> files_;
};

}  // namespace

Result<DeclaredTensors> onnx_declared(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(path, std::numeric_limits<int>::max()));
  TS_ASSIGN_OR_RETURN(const onnx::ModelProto model, parse_model(bytes, path));
  std::set<std::string> initializers;
  for (const auto& initializer : model.graph().initializer()) initializers.insert(initializer.name());
  DeclaredTensors tensors;
  for (const auto& input : model.graph().input())
    if (!initializers.contains(input.name())) tensors.inputs.push_back(declared(input));
  for (const auto& output : model.graph().output()) tensors.outputs.push_back(declared(output));
  ExternalFiles files;
  files.add(model.graph());
  for (const auto& function : model.functions())
    for (const auto& node : function.node()) files.add(node);
  tensors.external_files = files.sorted();
  return tensors;
}

}  // namespace tensorsmith::graph
