#include "onnx_testdata.h"

#include <onnx/onnx-data_pb.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/input_file.h"
#include "graph/onnx/tensor.h"
#include "graph/ops/op_context.h"

namespace tensorsmith::graph::testing {

namespace {

class Reader {
 public:
  explicit Reader(const std::filesystem::path& place) : place_(place.string()) {}

  // Reads one file: a tensor, a sequence or an optional, according to the type.
  Status read(const std::filesystem::path& path, const onnx::ValueInfoProto& info) {
    place_ = path.string();
    TS_ASSIGN_OR_RETURN(bytes_, read_input(path.string(), std::numeric_limits<int>::max()));
    name = info.name();
    const onnx::TypeProto& type = info.type();
    if (type.has_sequence_type()) return sequence();
    if (!type.has_optional_type()) return tensor();
    onnx::OptionalProto optional;
    if (!optional.ParsePartialFromString(bytes_)) return bad();
    if (optional.has_tensor_value()) return add(optional.tensor_value(), name);
    if (optional.has_sequence_value()) return elements(optional.sequence_value());
    if (optional.has_elem_type() && optional.elem_type() == 0) {
      absent.push_back(name);
      return {};
    }
    // Some files contain the optional's value directly.
    if (type.optional_type().elem_type().has_sequence_type() && !bytes_.empty()) return sequence();
    if (type.optional_type().elem_type().has_tensor_type() && bytes_.size() > 4) return tensor();
    absent.push_back(name);
    return {};
  }

  std::string name;
  std::vector<lower::Tensor> tensors;
  std::vector<std::string> names;
  std::vector<std::string> absent;

 private:
  Error bad() const { return Error{ErrorCode::kCorrupt, place_, "is of another type than the model says"}; }
  Status tensor() {
    onnx::TensorProto proto;
    if (!proto.ParsePartialFromString(bytes_)) return bad();
    return add(proto, name);
  }
  Status sequence() {
    onnx::SequenceProto proto;
    if (!proto.ParsePartialFromString(bytes_)) return bad();
    return elements(proto);
  }
  Status elements(const onnx::SequenceProto& proto) {
    if (proto.tensor_values_size() == 0) absent.push_back(name);
    for (int i = 0; i < proto.tensor_values_size(); ++i)
      TS_RETURN_IF_ERROR(add(proto.tensor_values(i), name + "[" + std::to_string(i) + "]"));
    return {};
  }
  Status add(const onnx::TensorProto& proto, const std::string& called) {
    TensorSource source;
    auto tensor = tensor_from_proto(proto, source);
    if (!tensor.ok()) {
      Error error = std::move(tensor).error();
      error.place = place_ + ": " + error.place;
      return error;
    }
    tensors.push_back(*std::move(tensor));
    names.push_back(called);
    return {};
  }
  std::string place_;
  std::string bytes_;
};

}  // namespace

Result<DataSet> read_data_set(const std::filesystem::path& folder, const std::filesystem::path& model) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(model.string(), std::numeric_limits<int>::max()));
  onnx::ModelProto proto;
  if (!proto.ParsePartialFromString(bytes))
    return Error{ErrorCode::kCorrupt, model.string(), "is not a model"};
  Reader inputs(folder), outputs(folder);
  std::set<std::string> initializers;
  for (const auto& initializer : proto.graph().initializer()) initializers.insert(initializer.name());
  int number = 0;
  for (const auto& input : proto.graph().input()) {
    if (initializers.contains(input.name())) continue;
    const auto path = folder / ("input_" + std::to_string(number++) + ".pb");
    if (std::filesystem::exists(path)) TS_RETURN_IF_ERROR(inputs.read(path, input));
  }
  for (int i = 0; i < proto.graph().output_size(); ++i) {
    const auto path = folder / ("output_" + std::to_string(i) + ".pb");
    if (std::filesystem::exists(path)) TS_RETURN_IF_ERROR(outputs.read(path, proto.graph().output(i)));
  }
  return DataSet{std::move(inputs.tensors), std::move(outputs.tensors), std::move(inputs.names),
                 std::move(inputs.absent)};
}

std::string difference(const lower::Tensor& got, const lower::Tensor& expected, double rtol, double atol) {
  if (got.dtype != expected.dtype || got.shape != expected.shape) {
    return describe(got.dtype, got.shape) + " instead of " + describe(expected.dtype, expected.shape);
  }
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const ir::Scalar a = got.at(i);
    const ir::Scalar b = expected.at(i);
    bool same = a.i == b.i;
    if (ir::is_float(expected.dtype)) {
      same = a.f == b.f || (std::isnan(a.f) && std::isnan(b.f)) ||
             (std::isfinite(b.f) && std::abs(a.f - b.f) <= atol + rtol * std::abs(b.f));
    }
    if (same) continue;
    const auto text = [](const ir::Scalar& s) {
      return ir::is_float(s.dtype) ? std::to_string(s.f) : std::to_string(s.i);
    };
    return "element " + std::to_string(i) + " of " + describe(got.dtype, got.shape) + " is " + text(a) +
           " instead of " + text(b);
  }
  return "";
}

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (ValueId id : graph.inputs) names.push_back(graph.values[id].name);
  return names;
}

}  // namespace tensorsmith::graph::testing
