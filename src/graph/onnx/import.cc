#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>

#include "base/input_file.h"
#include "graph/emit.h"
#include "graph/infer.h"
#include "graph/onnx/tensor.h"
#include "graph/ops/op_context.h"

namespace tensorsmith::graph {

namespace {

// These operators changed their meaning: before opset 6 (flags and types that are gone), or before opset 7
// and not understood here. The others are the same from opset 1 on, or their emitters know the old forms.
constexpr int kModernOpset = 7;
// A later one may give an operator another meaning under the same name.
constexpr int kNewestOpset = 24;
// ONNX 1.23's. Versions of the file format only add fields and data types, but nothing says that a later one
// does not change what is read here.
constexpr int64_t kNewestIrVersion = 14;
constexpr std::array<std::string_view, 17> kChangedBefore6 = {"Add",   "And",  "BatchNormalization",
                                                              "Cast",  "Div",  "Dropout",
                                                              "Equal", "Gemm", "Greater",
                                                              "Less",  "Mul",  "Or",
                                                              "PRelu", "Pow",  "Sub",
                                                              "Tile",  "Xor"};
constexpr std::array<std::string_view, 5> kChangedBefore7 = {"GRU", "LSTM", "LpPool", "RNN", "Upsample"};
// Nested If branches and functions.
constexpr int kMaxDepth = 16;
// A function that calls functions can grow exponentially: nodes, calls, and their inputs, outputs and
// attributes.
constexpr size_t kMaxParts = 8'000'000;
// Names in messages are cut here: a message is a line.
constexpr size_t kMaxShownName = 160;
constexpr size_t kMaxShownReason = 600;
// Concat and Sum of that many: what they make is an expression as deep.
constexpr int kMaxNodeValues = 4096;
// FunctionProto's attributes with default values, and names of overloads, which came after the messages that
// this is built with.
constexpr int kFunctionDefaults = 11;
constexpr int kFunctionOverload = 13;

std::string full_op(const std::string& domain, const std::string& op) {
  return domain.empty() || domain == "ai.onnx" ? op : domain + "." + op;
}

std::string shown(const std::string& name) {
  return name.size() <= kMaxShownName ? name : name.substr(0, kMaxShownName) + "...";
}

// Names visible at a node: those of an If branch include the enclosing ones.
struct Scope {
  const Scope* parent = nullptr;
  std::map<std::string, ValueId> names;
  int opset = 0;
  const std::map<std::string, Attribute>* arguments = nullptr;  // attributes of a function call

  std::optional<ValueId> find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
      const auto found = scope->names.find(name);
      if (found != scope->names.end()) return found->second;
    }
    return std::nullopt;
  }
};

class Importer {
 public:
  Importer(const onnx::ModelProto& model, const ImportOptions& options, std::string place,
           TensorSource source)
      : model_(model), options_(options), place_(std::move(place)), source_(std::move(source)) {
    limits_.constant_bytes_left = options.max_constant_bytes;
    source_.bytes_left = options.max_constant_bytes;
  }

  Result<Graph> run();

 private:
  using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  Error corrupt(std::string reason) const { return {ErrorCode::kCorrupt, place_, std::move(reason)}; }
  Error at_node(const onnx::NodeProto& node, ErrorCode code, std::string reason) const {
    return {code, place_ + ": node '" + shown(node.name().empty() ? node.op_type() : node.name()) + "'",
            std::move(reason)};
  }
  Error in_file(Error error) const {
    error.place = error.place.empty() ? place_ : place_ + ": " + shown(error.place);
    if (error.reason.size() > kMaxShownReason) error.reason = error.reason.substr(0, kMaxShownReason) + "...";
    return error;
  }

  Result<int> opset_of(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) const;
  void collect_unsupported(const NodeList& nodes, int depth,
                           std::map<std::string, std::vector<std::string>>& found) const;
  Status check_operators() const;
  Status add_initializers(const onnx::GraphProto& graph, Scope& scope);
  Status add_inputs(Scope& scope);
  Result<Shape> input_shape(const onnx::ValueInfoProto& info);
  Status add_nodes(const NodeList& nodes, Scope& scope, int depth);
  Status add_node(const onnx::NodeProto& proto, Scope& scope, int depth);
  Status inline_if(const onnx::NodeProto& proto, Scope& scope, int depth);
  Status inline_function(const onnx::FunctionProto& function, const onnx::NodeProto& proto, Scope& scope,
                         int depth);
  Status collect_functions();
  const onnx::FunctionProto* find_function(const onnx::NodeProto& proto) const;
  Result<std::map<std::string, Attribute>> default_attributes(const onnx::FunctionProto& function,
                                                              const onnx::NodeProto& call);
  Status count(size_t parts);
  Result<std::map<std::string, Attribute>> read_attributes(const onnx::NodeProto& proto, const Scope& scope);
  Result<Attribute> read_attribute(const onnx::NodeProto& node, const onnx::AttributeProto& proto);
  Result<ValueId> input_value(const onnx::NodeProto& node, const std::string& name, const Scope& scope) const;
  Status define(const std::string& name, ValueId id, Scope& scope) const;
  ValueId add_value(const std::string& name);
  ValueId output_value(ValueId source, const std::string& name);

  const onnx::ModelProto& model_;
  const ImportOptions& options_;
  std::string place_;
  TensorSource source_;
  FoldLimits limits_;
  std::map<std::string, int64_t> known_dims_;  // named dimensions resolved by an option
  size_t expanded_ = 0;                        // parts seen, those of inlined functions each time
  std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*> functions_;  // by domain and name
  Graph graph_;
};

Result<int> Importer::opset_of(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) const {
  std::optional<int64_t> version;
  for (const auto& import : imports) {
    if (!import.domain().empty() && import.domain() != "ai.onnx") continue;
    if (version && *version != import.version())
      return corrupt("the model names two versions of the ONNX opset");
    version = import.version();
  }
  if (!version) return corrupt("the model does not say which ONNX opset it uses");
  if (*version < 1) return corrupt("the model's ONNX opset is " + std::to_string(*version));
  if (*version > kNewestOpset) {
    return Error{ErrorCode::kUnsupported, place_,
                 "the model uses ONNX opset " + std::to_string(*version) + ", the newest known is " +
                     std::to_string(kNewestOpset) + "; export or convert it to that opset"};
  }
  return static_cast<int>(*version);
}

const onnx::FunctionProto* Importer::find_function(const onnx::NodeProto& proto) const {
  const auto found = functions_.find({proto.domain(), proto.op_type()});
  return found == functions_.end() ? nullptr : found->second;
}

Status Importer::collect_functions() {
  for (const auto& function : model_.functions()) {
    const std::string name = "the function '" + shown(full_op(function.domain(), function.name())) + "'";
    if (!functions_.emplace(std::pair(function.domain(), function.name()), &function).second)
      return corrupt(name + " is defined twice");
    const auto& unknown = function.unknown_fields();
    for (int i = 0; i < unknown.field_count(); ++i) {
      if (unknown.field(i).number() == kFunctionOverload && !unknown.field(i).length_delimited().empty())
        return Error{ErrorCode::kUnsupported, place_, name + " has overloads"};
    }
  }
  return {};
}

// Attributes of the function that a call need not give.
Result<std::map<std::string, Attribute>> Importer::default_attributes(const onnx::FunctionProto& function,
                                                                      const onnx::NodeProto& call) {
  std::map<std::string, Attribute> defaults;
  const auto& unknown = function.unknown_fields();
  for (int i = 0; i < unknown.field_count(); ++i) {
    if (unknown.field(i).number() != kFunctionDefaults) continue;
    onnx::AttributeProto proto;
    if (unknown.field(i).type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED ||
        !proto.ParsePartialFromString(unknown.field(i).length_delimited()))
      return at_node(call, ErrorCode::kCorrupt, "its function has a damaged attribute");
    TS_ASSIGN_OR_RETURN(Attribute value, read_attribute(call, proto));
    defaults.insert_or_assign(proto.name(), std::move(value));
  }
  return defaults;
}

Status Importer::count(size_t parts) {
  expanded_ += parts;
  if (expanded_ <= kMaxParts) return {};
  return Error{ErrorCode::kResourceExhausted, place_,
               "the model has too many nodes, with those of its functions and branches: more than " +
                   std::to_string(kMaxParts) + " parts"};
}

void Importer::collect_unsupported(const NodeList& nodes, int depth,
                                   std::map<std::string, std::vector<std::string>>& found) const {
  if (depth > kMaxDepth) return;
  for (const auto& node : nodes) {
    const std::string op = full_op(node.domain(), node.op_type());
    if (op == "If") {
      for (const auto& attribute : node.attribute())
        collect_unsupported(attribute.g().node(), depth + 1, found);
      continue;
    }
    if (is_supported_operator(op) || find_function(node) != nullptr) continue;
    found[op].push_back(
        shown(node.name().empty() ? (node.output_size() > 0 ? node.output(0) : "") : node.name()));
  }
}

// All unsupported operators in one error, so that a user sees the whole distance at once.
Status Importer::check_operators() const {
  std::map<std::string, std::vector<std::string>> found;
  collect_unsupported(model_.graph().node(), 0, found);
  for (const auto& function : model_.functions()) collect_unsupported(function.node(), 0, found);
  if (found.empty()) return {};
  std::string list;
  size_t listed = 0;
  for (const auto& [op, nodes] : found) {
    if (listed++ == 20) {
      list += " and " + std::to_string(found.size() - 20) + " more";
      break;
    }
    if (!list.empty()) list += ", ";
    list += shown(op) + " (node '" + nodes.front() + "'";
    if (nodes.size() > 1) list += " and " + std::to_string(nodes.size() - 1) + " more";
    list += ")";
  }
  return Error{ErrorCode::kUnsupported, place_, "unsupported operators: " + list};
}

ValueId Importer::add_value(const std::string& name) {
  Value value;
  value.name = name;
  graph_.values.push_back(std::move(value));
  return static_cast<ValueId>(graph_.values.size() - 1);
}

Status Importer::define(const std::string& name, ValueId id, Scope& scope) const {
  if (!scope.names.emplace(name, id).second)
    return corrupt("the value '" + shown(name) + "' is defined twice");
  return {};
}

Status Importer::add_initializers(const onnx::GraphProto& graph, Scope& scope) {
  if (graph.sparse_initializer_size() > 0) {
    return Error{ErrorCode::kUnsupported, place_, "sparse initializers are not supported"};
  }
  for (const auto& proto : graph.initializer()) {
    if (proto.name().empty()) return corrupt("an initializer has no name");
    auto tensor = tensor_from_proto(proto, source_);
    if (!tensor.ok()) return in_file(std::move(tensor).error());
    limits_.constant_bytes_left = std::min(limits_.constant_bytes_left, source_.bytes_left);
    const ValueId id = add_value(proto.name());
    Value& value = graph_.values.back();
    value.dtype = tensor->dtype;
    value.shape = tensor->shape;
    value.constant = std::make_shared<const lower::Tensor>(*std::move(tensor));
    TS_RETURN_IF_ERROR(define(proto.name(), id, scope));
  }
  return {};
}

// Dimensions from the file, unless an option gives them.
Result<Shape> Importer::input_shape(const onnx::ValueInfoProto& info) {
  const std::string& name = info.name();
  const auto& type = info.type().tensor_type();
  const auto given = options_.shapes.find(name);
  const auto usage = [&](const std::string& example) {
    return "give it with --shape " + name + "=" + example;
  };
  if (!type.has_shape() && given == options_.shapes.end()) {
    return Error{ErrorCode::kInvalidArgument, place_,
                 "input '" + name + "' has no shape; " + usage("1x3x224x224 (for instance)")};
  }
  Shape shape;
  std::string example;
  std::string missing;
  for (int d = 0; d < type.shape().dim_size(); ++d) {
    const auto& dim = type.shape().dim(d);
    const auto known = known_dims_.find(dim.dim_param());
    int64_t extent = -1;
    if (dim.has_dim_value()) {
      extent = dim.dim_value();
    } else if (!dim.dim_param().empty() && known != known_dims_.end()) {
      extent = known->second;
    }
    const std::string label =
        dim.dim_param().empty() ? std::to_string(d) : std::to_string(d) + " ('" + dim.dim_param() + "')";
    if (extent < 0) missing += (missing.empty() ? "" : ", ") + label;
    example += (d > 0 ? "x" : "") + (extent < 0 ? "N" : std::to_string(extent));
    shape.push_back(extent);
  }
  if (given != options_.shapes.end()) {
    if (type.has_shape() && given->second.size() != shape.size()) {
      return Error{ErrorCode::kInvalidArgument, place_,
                   "the given shape of input '" + name + "' has " + std::to_string(given->second.size()) +
                       " dimensions, the model's " + std::to_string(shape.size())};
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] < 0 || shape[d] == given->second[d]) continue;
      const auto& dim = type.shape().dim(static_cast<int>(d));
      const std::string why =
          dim.has_dim_value()
              ? "is fixed at " + std::to_string(shape[d]) + " in the model"
              : "('" + dim.dim_param() + "') is given as " + std::to_string(shape[d]) + " elsewhere";
      return Error{ErrorCode::kInvalidArgument, place_,
                   "the given shape of input '" + name + "' has " + std::to_string(given->second[d]) +
                       " in dimension " + std::to_string(d) + ", which " + why};
    }
    shape = given->second;
  } else if (!missing.empty()) {
    return Error{ErrorCode::kInvalidArgument, place_,
                 "input '" + name + "' has unknown dimension " + missing + "; " + usage(example) +
                     " (a number for each N)"};
  }
  if (!is_reasonable(shape)) {
    return Error{ErrorCode::kInvalidArgument, place_,
                 "input '" + name + "' has an unreasonable shape: " + describe(ir::DType::kF32, shape)};
  }
  return shape;
}

Status Importer::add_inputs(Scope& scope) {
  // Shapes that were given resolve named dimensions of the other inputs.
  for (const auto& info : model_.graph().input()) {
    const auto given = options_.shapes.find(info.name());
    if (given == options_.shapes.end()) continue;
    const auto& dims = info.type().tensor_type().shape().dim();
    for (int d = 0; d < dims.size() && static_cast<size_t>(d) < given->second.size(); ++d) {
      if (!dims.Get(d).dim_param().empty()) {
        known_dims_.emplace(dims.Get(d).dim_param(), given->second[static_cast<size_t>(d)]);
      }
    }
  }
  std::set<std::string> names;
  for (const auto& info : model_.graph().input()) {
    if (scope.names.contains(info.name())) continue;  // an initializer, listed among the inputs before IR 4
    names.insert(info.name());
    if (info.name().empty()) return corrupt("an input has no name");
    if (!info.type().has_tensor_type()) {
      return Error{ErrorCode::kUnsupported, place_, "input '" + info.name() + "' is not a tensor"};
    }
    const auto dtype = onnx_dtype(info.type().tensor_type().elem_type());
    if (!dtype) {
      const int64_t number = info.type().tensor_type().elem_type();
      return Error{ErrorCode::kUnsupported, place_,
                   "input '" + info.name() + "' has ONNX data type " + std::to_string(number) +
                       (number == 8 ? " (string)" : "") + ", which is not supported"};
    }
    const ValueId id = add_value(info.name());
    TS_RETURN_IF_ERROR(define(info.name(), id, scope));
    const auto constant = options_.constant_inputs.find(info.name());
    if (constant != options_.constant_inputs.end()) {
      Value& value = graph_.values.back();
      value.dtype = constant->second.dtype;
      value.shape = constant->second.shape;
      value.constant = std::make_shared<const lower::Tensor>(constant->second);
      if (value.dtype != *dtype || !is_reasonable(value.shape)) {
        return Error{ErrorCode::kInvalidArgument, place_,
                     "the given contents of input '" + info.name() + "' have the wrong dtype"};
      }
      continue;
    }
    TS_ASSIGN_OR_RETURN(graph_.values.back().shape, input_shape(info));
    graph_.values.back().dtype = *dtype;
    graph_.inputs.push_back(id);
  }
  for (const auto& [name, shape] : options_.shapes) {
    if (names.contains(name)) continue;
    std::string list;
    for (ValueId id : graph_.inputs) list += " '" + graph_.values[static_cast<size_t>(id)].name + "'";
    return Error{ErrorCode::kInvalidArgument, place_,
                 "a shape is given for '" + name + "', which is no input; inputs are:" + list};
  }
  return {};
}

Result<ValueId> Importer::input_value(const onnx::NodeProto& node, const std::string& name,
                                      const Scope& scope) const {
  if (name.empty()) return kNoValue;
  const auto id = scope.find(name);
  if (!id)
    return at_node(node, ErrorCode::kCorrupt, "reads '" + shown(name) + "', which nothing before it defines");
  return *id;
}

Result<Attribute> Importer::read_attribute(const onnx::NodeProto& node, const onnx::AttributeProto& proto) {
  switch (proto.type()) {
    case onnx::AttributeProto::FLOAT:
      return Attribute(static_cast<double>(proto.f()));
    case onnx::AttributeProto::INT:
      return Attribute(static_cast<int64_t>(proto.i()));
    case onnx::AttributeProto::STRING:
      return Attribute(proto.s());
    case onnx::AttributeProto::FLOATS:
      return Attribute(std::vector<double>(proto.floats().begin(), proto.floats().end()));
    case onnx::AttributeProto::INTS:
      return Attribute(std::vector<int64_t>(proto.ints().begin(), proto.ints().end()));
    case onnx::AttributeProto::STRINGS:
      return Attribute(std::vector<std::string>(proto.strings().begin(), proto.strings().end()));
    case onnx::AttributeProto::TENSOR: {
      auto tensor = tensor_from_proto(proto.t(), source_);
      if (!tensor.ok()) return in_file(std::move(tensor).error());
      return Attribute(*std::move(tensor));
    }
    default:
      return at_node(node, ErrorCode::kUnsupported,
                     "attribute '" + proto.name() + "' has a type that is not supported (" +
                         std::to_string(static_cast<int>(proto.type())) + ")");
  }
}

Result<std::map<std::string, Attribute>> Importer::read_attributes(const onnx::NodeProto& proto,
                                                                   const Scope& scope) {
  std::map<std::string, Attribute> attributes;
  for (const auto& attribute : proto.attribute()) {
    if (!attribute.ref_attr_name().empty()) {
      if (scope.arguments == nullptr) {
        return at_node(proto, ErrorCode::kCorrupt, "refers to a function's attribute outside of a function");
      }
      const auto argument = scope.arguments->find(attribute.ref_attr_name());
      if (argument == scope.arguments->end()) continue;
      if (const auto* tensor = std::get_if<lower::Tensor>(&argument->second)) {
        const auto bytes = static_cast<int64_t>(tensor->data.size());
        if (bytes > source_.bytes_left)
          return at_node(proto, ErrorCode::kResourceExhausted, "the model's constants take too much memory");
        source_.bytes_left -= bytes;
      }
      attributes.insert_or_assign(attribute.name(), argument->second);
      continue;
    }
    TS_ASSIGN_OR_RETURN(Attribute value, read_attribute(proto, attribute));
    attributes.insert_or_assign(attribute.name(), std::move(value));
  }
  return attributes;
}

// Constant's value in one of its forms.
Result<lower::Tensor> constant_value(const std::map<std::string, Attribute>& attributes) {
  const auto scalars = [](ir::DType dtype, Shape shape, const auto& values) {
    lower::Tensor tensor = lower::Tensor::zeros(dtype, std::move(shape));
    int64_t i = 0;
    for (const auto& v : values) {
      tensor.set(i++, dtype == ir::DType::kF32 ? ir::scalar_float(dtype, static_cast<double>(v))
                                               : ir::scalar_int(dtype, static_cast<int64_t>(v)));
    }
    return tensor;
  };
  for (const auto& [name, attribute] : attributes) {
    if (const auto* tensor = std::get_if<lower::Tensor>(&attribute); name == "value" && tensor != nullptr) {
      return *tensor;
    }
    if (const auto* f = std::get_if<double>(&attribute); name == "value_float" && f != nullptr) {
      return scalars(ir::DType::kF32, {}, std::vector<double>{*f});
    }
    if (const auto* i = std::get_if<int64_t>(&attribute); name == "value_int" && i != nullptr) {
      return scalars(ir::DType::kI64, {}, std::vector<int64_t>{*i});
    }
    if (const auto* f = std::get_if<std::vector<double>>(&attribute);
        name == "value_floats" && f != nullptr) {
      return scalars(ir::DType::kF32, {static_cast<int64_t>(f->size())}, *f);
    }
    if (const auto* i = std::get_if<std::vector<int64_t>>(&attribute); name == "value_ints" && i != nullptr) {
      return scalars(ir::DType::kI64, {static_cast<int64_t>(i->size())}, *i);
    }
  }
  return Error{ErrorCode::kUnsupported, "", "Constant without a numeric value"};
}

Status Importer::inline_if(const onnx::NodeProto& proto, Scope& scope, int depth) {
  if (proto.input_size() != 1) return at_node(proto, ErrorCode::kCorrupt, "If needs one input");
  TS_ASSIGN_OR_RETURN(const ValueId condition, input_value(proto, proto.input(0), scope));
  const lower::Tensor* known =
      condition == kNoValue ? nullptr : graph_.values[static_cast<size_t>(condition)].constant.get();
  if (known == nullptr || known->dtype != ir::DType::kBool || known->num_elements() != 1) {
    return at_node(proto, ErrorCode::kUnsupported,
                   "If: input 0 (condition) must be constant; it is only known at run time");
  }
  const std::string wanted = known->at(0).i != 0 ? "then_branch" : "else_branch";
  for (const auto& attribute : proto.attribute()) {
    if (attribute.name() != wanted) continue;
    Scope inner;
    inner.parent = &scope;
    inner.opset = scope.opset;
    inner.arguments = scope.arguments;
    TS_RETURN_IF_ERROR(add_initializers(attribute.g(), inner));
    TS_RETURN_IF_ERROR(add_nodes(attribute.g().node(), inner, depth + 1));
    if (attribute.g().output_size() < proto.output_size()) {
      return at_node(proto, ErrorCode::kCorrupt, "the branch has fewer outputs than the node");
    }
    for (int i = 0; i < proto.output_size(); ++i) {
      const auto id = inner.find(attribute.g().output(i).name());
      if (!id) return at_node(proto, ErrorCode::kCorrupt, "an output of the branch is not defined");
      if (!proto.output(i).empty()) TS_RETURN_IF_ERROR(define(proto.output(i), *id, scope));
    }
    return {};
  }
  return at_node(proto, ErrorCode::kCorrupt, "If has no " + wanted);
}

Status Importer::inline_function(const onnx::FunctionProto& function, const onnx::NodeProto& proto,
                                 Scope& scope, int depth) {
  TS_ASSIGN_OR_RETURN(auto arguments, read_attributes(proto, scope));
  TS_ASSIGN_OR_RETURN(auto defaults, default_attributes(function, proto));
  arguments.merge(std::move(defaults));
  TS_RETURN_IF_ERROR(count(static_cast<size_t>(function.input_size()) + arguments.size()));
  Scope inner;
  inner.arguments = &arguments;
  TS_ASSIGN_OR_RETURN(inner.opset, opset_of(function.opset_import()));
  if (proto.input_size() > function.input_size() || proto.output_size() > function.output_size()) {
    return at_node(proto, ErrorCode::kCorrupt, "has more inputs or outputs than its function");
  }
  for (int i = 0; i < function.input_size(); ++i) {
    const std::string given = i < proto.input_size() ? proto.input(i) : std::string();
    TS_ASSIGN_OR_RETURN(const ValueId id, input_value(proto, given, scope));
    TS_RETURN_IF_ERROR(define(function.input(i), id, inner));
  }
  TS_RETURN_IF_ERROR(add_nodes(function.node(), inner, depth + 1));
  for (int i = 0; i < proto.output_size(); ++i) {
    const auto id = inner.find(function.output(i));
    if (!id || *id == kNoValue)
      return at_node(proto, ErrorCode::kCorrupt, "an output of the function is not defined");
    if (!proto.output(i).empty()) TS_RETURN_IF_ERROR(define(proto.output(i), *id, scope));
  }
  return {};
}

Status Importer::add_node(const onnx::NodeProto& proto, Scope& scope, int depth) {
  TS_RETURN_IF_ERROR(count(1 + static_cast<size_t>(proto.input_size()) +
                           static_cast<size_t>(proto.output_size()) +
                           static_cast<size_t>(proto.attribute_size())));
  if (proto.input_size() > kMaxNodeValues || proto.output_size() > kMaxNodeValues)
    return at_node(proto, ErrorCode::kResourceExhausted,
                   "has more than " + std::to_string(kMaxNodeValues) +
                       " inputs or outputs; split it into several nodes");
  const std::string op = full_op(proto.domain(), proto.op_type());
  if (op == "If") return inline_if(proto, scope, depth);
  if (const onnx::FunctionProto* function = find_function(proto);
      function != nullptr && !is_supported_operator(op)) {
    return inline_function(*function, proto, scope, depth);
  }
  const auto listed = [&](const auto& list) { return std::find(list.begin(), list.end(), op) != list.end(); };
  if ((scope.opset < 6 && listed(kChangedBefore6)) || (scope.opset < 7 && listed(kChangedBefore7)) ||
      (scope.opset < 2 && op == "Pad")) {
    return at_node(proto, ErrorCode::kUnsupported,
                   op + " of opset " + std::to_string(scope.opset) +
                       " is too old; convert the model to opset " + std::to_string(kModernOpset) +
                       " or later");
  }
  Node node;
  node.op = op;
  node.name = proto.name().empty() ? op + "_" + std::to_string(graph_.nodes.size()) : proto.name();
  node.opset = scope.opset;
  TS_ASSIGN_OR_RETURN(node.attributes, read_attributes(proto, scope));
  for (const std::string& name : proto.input()) {
    TS_ASSIGN_OR_RETURN(const ValueId id, input_value(proto, name, scope));
    node.inputs.push_back(id);
  }
  while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
  for (const std::string& name : proto.output())
    node.outputs.push_back(name.empty() ? kNoValue : add_value(name));
  while (!node.outputs.empty() && node.outputs.back() == kNoValue) node.outputs.pop_back();
  if (node.outputs.empty()) return {};

  if (op == "Constant") {
    auto value = constant_value(node.attributes);
    if (!value.ok()) return at_node(proto, value.error().code, value.error().reason);
    Value& output = graph_.values[static_cast<size_t>(node.outputs[0])];
    output.dtype = value->dtype;
    output.shape = value->shape;
    output.constant = std::make_shared<const lower::Tensor>(*std::move(value));
    return define(output.name, node.outputs[0], scope);
  }
  // Quantized weights stay integers: fuse_quantized decides about them.
  FoldLimits none;
  none.max_bytes = -1;
  FoldLimits& limits = node.op == "DequantizeLinear" ? none : limits_;
  if (Status status = infer_node(graph_, node, limits); !status.ok())
    return in_file(std::move(status).error());
  bool folded = true;
  for (ValueId id : node.outputs) {
    if (id == kNoValue) continue;
    const Value& value = graph_.values[static_cast<size_t>(id)];
    folded = folded && value.constant != nullptr;
    TS_RETURN_IF_ERROR(define(value.name, id, scope));
  }
  if (!folded) graph_.nodes.push_back(std::move(node));
  return {};
}

Status Importer::add_nodes(const NodeList& nodes, Scope& scope, int depth) {
  if (depth > kMaxDepth) return corrupt("subgraphs or functions are nested too deeply");
  for (const auto& node : nodes) TS_RETURN_IF_ERROR(add_node(node, scope, depth));
  return {};
}

Result<Graph> Importer::run() {
  const onnx::GraphProto& proto = model_.graph();
  if (!model_.has_graph() || proto.output_size() == 0) {
    return corrupt("is no ONNX model: it has no graph with outputs");
  }
  graph_.name = proto.name();
  Scope scope;
  if (model_.ir_version() > kNewestIrVersion) {
    return Error{ErrorCode::kUnsupported, place_,
                 "the model has version " + std::to_string(model_.ir_version()) +
                     " of ONNX's file format (IR), the newest known is " + std::to_string(kNewestIrVersion) +
                     "; export it with an older version of ONNX"};
  }
  TS_RETURN_IF_ERROR(collect_functions());
  TS_RETURN_IF_ERROR(check_operators());
  TS_ASSIGN_OR_RETURN(scope.opset, opset_of(model_.opset_import()));
  TS_RETURN_IF_ERROR(add_initializers(proto, scope));
  TS_RETURN_IF_ERROR(add_inputs(scope));
  TS_RETURN_IF_ERROR(add_nodes(proto.node(), scope, 0));
  std::set<std::string> outputs;
  for (const auto& output : proto.output()) {
    const auto id = scope.find(output.name());
    if (!id) return corrupt("nothing computes the output '" + shown(output.name()) + "'");
    if (!outputs.insert(output.name()).second) {
      return corrupt("the output '" + shown(output.name()) + "' is listed twice");
    }
    graph_.outputs.push_back(output_value(*id, output.name()));
  }
  return std::move(graph_);
}

// Each output is a value of its own with the output's name. An input, or a value that is an output already or
// has another name (the result of an inlined branch or function), gets a copy.
ValueId Importer::output_value(ValueId source, const std::string& name) {
  const auto in = [&](const std::vector<ValueId>& list) {
    return std::find(list.begin(), list.end(), source) != list.end();
  };
  if (graph_.values[static_cast<size_t>(source)].name == name && !in(graph_.inputs) && !in(graph_.outputs))
    return source;
  const ValueId copy = add_value(name);
  const Value& value = graph_.values[static_cast<size_t>(source)];
  graph_.values[static_cast<size_t>(copy)] = {name, value.dtype, value.shape, value.constant};
  if (value.constant != nullptr) return copy;
  Node node;
  node.op = "Identity";
  node.name = "output_" + name;
  node.opset = kModernOpset;
  node.inputs = {source};
  node.outputs = {copy};
  graph_.nodes.push_back(std::move(node));
  return copy;
}

Result<onnx::ModelProto> parse_model(std::string_view bytes, const std::string& place) {
  // Protobuf must not write its own complaints to the standard error stream.
  const google::protobuf::LogSilencer silencer;
  onnx::ModelProto model;
  if (const Status parsed = parse_message(bytes, WireMessage::kModel, model); !parsed.ok()) {
    if (parsed.error().code != ErrorCode::kCorrupt)
      return Error{parsed.error().code, place, parsed.error().reason};
    return Error{ErrorCode::kCorrupt, place,
                 "is no ONNX model (truncated, damaged or of another format); export or download it again"};
  }
  return model;
}

Result<Graph> import_message(std::string_view bytes, const ImportOptions& options, const std::string& place,
                             TensorSource source) {
  TS_ASSIGN_OR_RETURN(const onnx::ModelProto model, parse_model(bytes, place));
  return Importer(model, options, place, std::move(source)).run();
}

}  // namespace

Result<Graph> import_onnx(const std::string& path, const ImportOptions& options) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(path, std::numeric_limits<int>::max()));
  TensorSource source;
  source.directory = std::filesystem::path(path).parent_path().string();
  if (source.directory.empty()) source.directory = ".";
  source.has_directory = true;
  std::error_code unknown;
  const auto real = std::filesystem::canonical(path, unknown);
  if (!unknown && std::filesystem::is_symlink(path, unknown))
    source.real_directory = real.parent_path().string();
  return import_message(bytes, options, path, std::move(source));
}

Result<std::vector<std::string>> onnx_input_names(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(path, std::numeric_limits<int>::max()));
  TS_ASSIGN_OR_RETURN(const onnx::ModelProto model, parse_model(bytes, path));
  std::set<std::string> initializers;
  for (const auto& initializer : model.graph().initializer()) initializers.insert(initializer.name());
  std::vector<std::string> names;
  for (const auto& input : model.graph().input()) {
    if (!initializers.contains(input.name())) names.push_back(input.name());
  }
  return names;
}

Result<Graph> import_onnx_bytes(std::string_view bytes, const ImportOptions& options,
                                const std::string& display_name) {
  return import_message(bytes, options, display_name, TensorSource{});
}

}  // namespace tensorsmith::graph
