#include "graph/ops/op_context.h"

#include <algorithm>

namespace tensorsmith::graph {

std::string onnx_type_name(int64_t data_type) {
  if (const auto dtype = onnx_dtype(data_type)) return std::string(row_of(*dtype).onnx_name);
  switch (data_type) {
    case 8:
      return "string";
    case 14:
      return "complex64";
    case 15:
      return "complex128";
    case 17:
      return "float8e4m3fn";
    case 18:
      return "float8e4m3fnuz";
    case 19:
      return "float8e5m2";
    case 20:
      return "float8e5m2fnuz";
    case 21:
      return "uint4";
    case 22:
      return "int4";
    case 23:
      return "float4e2m1";
    case 24:
      return "float8e8m0";
    case 25:
      return "uint2";
    case 26:
      return "int2";
    case 27:
      return "float6e2m3";
    case 28:
      return "float6e3m2";
    default:
      return "ONNX data type " + std::to_string(data_type);
  }
}

std::string describe(ir::DType dtype, const Shape& shape) {
  std::string text(ir::to_string(dtype));
  text += '[';
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape[i]);
  }
  return text + ']';
}

lower::Tensor vector_of(ir::DType dtype, std::span<const int64_t> values) {
  lower::Tensor tensor = lower::Tensor::zeros(dtype, {std::ssize(values)});
  for (size_t i = 0; i < values.size(); ++i) tensor.set(i, ir::scalar_int(dtype, values[i]));
  return tensor;
}

lower::Tensor vector_of(ir::DType dtype, std::span<const double> values) {
  lower::Tensor tensor = lower::Tensor::zeros(dtype, {std::ssize(values)});
  for (size_t i = 0; i < values.size(); ++i) tensor.set(i, ir::scalar_float(dtype, values[i]));
  return tensor;
}

bool is_reasonable(std::span<const int64_t> shape) {
  if (shape.size() > kMaxRank) return false;
  int64_t total = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || extent > kMaxElements) return false;
    if (extent == 0) continue;
    if (total > kMaxElements / extent) return false;
    total *= extent;
  }
  return true;
}

int64_t product(std::span<const int64_t> extents) {
  int64_t total = 1;
  for (int64_t extent : extents) total *= extent;
  return total;
}

ir::Expr OpContext::product(const ir::Expr& a, const ir::Expr& b) const {
  if (!has_attr(kRoundFactors)) return a * b;
  const auto rounded = [](const ir::Expr& e) { return ir::call(ir::Intrinsic::kRoundTf32, {e}); };
  return rounded(a) * rounded(b);
}

Error OpContext::invalid(std::string reason) const {
  return Error{ErrorCode::kInvalidArgument, node_.name, node_.op + ": " + std::move(reason)};
}

Error OpContext::unsupported(std::string reason) const {
  return Error{ErrorCode::kUnsupported, node_.name, node_.op + ": " + std::move(reason)};
}

ir::DType OpContext::declared_dtype(size_t i) const { return graph_.values[node_.inputs[i]].dtype; }

const lower::Tensor* OpContext::constant(size_t i) const { return graph_.constant(node_.input(i)); }

const Shape* OpContext::pooled_shape(size_t i) const {
  const ValueId id = node_.inputs.at(i);
  for (const Node& node : graph_.nodes) {
    if (node.op == "MaxPool" && node.outputs.size() > 1 && node.outputs[1] == id && id != kNoValue)
      return &graph_.values[node.inputs.at(0)].shape;
  }
  return nullptr;
}

Result<const lower::Tensor*> OpContext::constant_vector(size_t i, std::string_view what, bool floats) const {
  const lower::Tensor* tensor = constant(i);
  if (tensor == nullptr) {
    return unsupported("input " + std::to_string(i) + " (" + std::string(what) +
                       ") must be constant; it is only known at run time");
  }
  if (tensor->shape.size() > 1 || ir::is_float(tensor->dtype) != floats) {
    return invalid("input " + std::to_string(i) + " (" + std::string(what) + ") must be a vector of " +
                   (floats ? "floats" : "integers") + ", not " + describe(tensor->dtype, tensor->shape));
  }
  return tensor;
}

Result<std::vector<int64_t>> OpContext::constant_ints(size_t i, std::string_view what) const {
  TS_ASSIGN_OR_RETURN(const lower::Tensor* tensor, constant_vector(i, what, false));
  std::vector<int64_t> values;
  values.reserve(tensor->num_elements());
  for (int64_t k = 0; k < tensor->num_elements(); ++k) values.push_back(tensor->at(k).i);
  return values;
}

Result<std::vector<double>> OpContext::constant_floats(size_t i, std::string_view what) const {
  TS_ASSIGN_OR_RETURN(const lower::Tensor* tensor, constant_vector(i, what, true));
  std::vector<double> values;
  values.reserve(tensor->num_elements());
  for (int64_t k = 0; k < tensor->num_elements(); ++k) values.push_back(tensor->at(k).f);
  return values;
}

bool OpContext::has_attr(std::string_view name) const { return node_.attributes.contains(std::string(name)); }

template <class T>
const T* OpContext::find_attr(std::string_view name, const char* type) {
  const T* value = node_.find<T>(std::string(name));
  if (value == nullptr && has_attr(name)) fail(invalid("attribute " + std::string(name) + " is not " + type));
  return value;
}

int64_t OpContext::int_attr(std::string_view name, int64_t otherwise) {
  const auto* value = find_attr<int64_t>(name, "an integer");
  return value != nullptr ? *value : otherwise;
}

double OpContext::float_attr(std::string_view name, double otherwise) {
  const auto* value = find_attr<double>(name, "a float");
  // Attributes are floats, and so are their defaults: f64 data shows the difference.
  return value != nullptr ? *value : static_cast<float>(otherwise);
}

std::string OpContext::string_attr(std::string_view name, std::string otherwise) {
  const auto* value = find_attr<std::string>(name, "a string");
  if (value != nullptr) return *value;
  return otherwise;
}

std::optional<std::vector<int64_t>> OpContext::ints_attr(std::string_view name) {
  const auto* value = find_attr<std::vector<int64_t>>(name, "a list of integers");
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::optional<std::vector<double>> OpContext::floats_attr(std::string_view name) {
  const auto* value = find_attr<std::vector<double>>(name, "a list of floats");
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::optional<std::vector<std::string>> OpContext::strings_attr(std::string_view name) {
  const auto* value = find_attr<std::vector<std::string>>(name, "a list of strings");
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::vector<int64_t> OpContext::geometry_attr(std::string_view name, size_t count, int64_t otherwise) {
  std::optional<std::vector<int64_t>> values = ints_attr(name);
  if (!values) return std::vector<int64_t>(count, otherwise);
  if (values->size() != count) {
    fail(invalid("attribute " + std::string(name) + " has " + std::to_string(values->size()) +
                 " values instead of " + std::to_string(count)));
    return std::vector<int64_t>(count, otherwise);
  }
  for (int64_t& value : *values) {
    if (value < -kMaxGeometry || value > kMaxGeometry) {
      fail(invalid("attribute " + std::string(name) + " is out of range: " + std::to_string(value)));
      value = otherwise;
    }
  }
  return *std::move(values);
}

Result<size_t> OpContext::normalize_axis(int64_t axis, size_t rank) const {
  const size_t from_front = axis < 0 ? axis + rank : axis;  // wraps around if axis < -rank
  if (from_front >= rank) {
    return invalid("axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank));
  }
  return from_front;
}

Result<std::vector<size_t>> OpContext::normalize_axes(std::span<const int64_t> axes, size_t rank) const {
  std::vector<size_t> result;
  for (int64_t axis : axes) {
    TS_ASSIGN_OR_RETURN(const size_t normalized, normalize_axis(axis, rank));
    if (std::find(result.begin(), result.end(), normalized) != result.end()) {
      return invalid("axis " + std::to_string(axis) + " is given twice");
    }
    result.push_back(normalized);
  }
  return result;
}

void OpContext::check_axes(const std::string& name, std::vector<ir::Axis>& spatial,
                           std::vector<ir::Axis>& reduce_axes) {
  Shape extents[2];
  double points = 1;
  for (const ir::Axis& axis : spatial) extents[0].push_back(axis.extent);
  for (const ir::Axis& axis : reduce_axes) extents[1].push_back(axis.extent);
  for (const Shape& shape : extents) {
    for (int64_t extent : shape) points *= std::max<int64_t>(extent, 1);
  }
  if (is_reasonable(extents[0]) && is_reasonable(extents[1]) && points <= kMaxPoints) return;
  fail(Error{ErrorCode::kResourceExhausted, node_.name,
             node_.op + ": " + name + " would be too large: " + describe(ir::DType::kI64, extents[0]) +
                 " elements, each reduced over " + describe(ir::DType::kI64, extents[1])});
  for (ir::Axis& axis : spatial) axis.extent = 1;
  for (ir::Axis& axis : reduce_axes) axis.extent = 1;
}

ir::Buffer OpContext::compute(const std::string& name, std::vector<ir::Axis> spatial, ir::Expr body) {
  return reduce(name, std::move(spatial), {}, ir::Combiner::kNone, std::move(body));
}

ir::Buffer OpContext::reduce(const std::string& name, std::vector<ir::Axis> spatial,
                             std::vector<ir::Axis> reduce_axes, ir::Combiner combiner, ir::Expr body) {
  check_axes(name, spatial, reduce_axes);
  return builder_.compute(name, std::move(spatial), std::move(reduce_axes), combiner, std::move(body));
}

Buffers OpContext::reduce_arg(const std::string& name, std::vector<ir::Axis> spatial,
                              std::vector<ir::Axis> reduce_axes, ir::Combiner combiner, ir::Expr value,
                              ir::Expr index) {
  check_axes(name, spatial, reduce_axes);
  return builder_.compute_pair(name, std::move(spatial), std::move(reduce_axes), combiner, std::move(value),
                               std::move(index));
}

}  // namespace tensorsmith::graph
