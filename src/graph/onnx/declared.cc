#include "graph/onnx/declared.h"

#include <limits>
#include <set>

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
  return tensors;
}

}  // namespace tensorsmith::graph
