#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include <filesystem>
#include <limits>

#include "base/input_file.h"
#include "graph/emit.h"
#include "graph/onnx/importer.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

// The oldest opset at which all operators have their present meaning (OpEntry::oldest_opset).
constexpr int kModernOpset = 7;
// The format version of ONNX 1.23. Versions have so far only added fields and data types, but a
// later one might change the meaning of what is read here.
constexpr int64_t kNewestIrVersion = 14;
// Limit on nested If branches and functions.
constexpr int kMaxDepth = 16;
// Functions that call functions can grow exponentially: limit on nodes, calls, and their inputs,
// outputs and attributes.
constexpr size_t kMaxParts = 8'000'000;
// Limit on the inputs of Concat and Sum, whose expressions are as deep.
constexpr int kMaxNodeValues = 4096;
// Field numbers of FunctionProto's attributes with default values and of overload names, which are
// newer than the message definitions that this is built with.
constexpr int kFunctionDefaults = 11;
constexpr int kFunctionOverload = 13;

std::string full_op(const std::string& domain, const std::string& op) {
  return domain.empty() || domain == "ai.onnx" ? op : domain + "." + op;
}

}  // namespace

Importer::Importer(const onnx::ModelProto& model, const ImportOptions& options, std::string place,
                   TensorSource source)
    : model_(model), options_(options), place_(std::move(place)), source_(std::move(source)) {
  limits_.constant_bytes_left = options.max_constant_bytes;
  source_.bytes_left = options.max_constant_bytes;
}

Result<int> Importer::opset_of(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  std::optional<int64_t> version;
  for (const auto& import : imports) {
    if (!import.domain().empty() && import.domain() != "ai.onnx") continue;
    if (version && *version != import.version())
      return corrupt("the model names two different versions of the ONNX opset");
    version = import.version();
  }
  // The model imports only operators of other domains.
  if (!version && !imports.empty()) version = kNewestOpset;
  if (!version) return corrupt("the model does not say which ONNX opset it uses");
  if (*version < 1) return corrupt("the model's ONNX opset is " + std::to_string(*version));
  if (*version > kNewestOpset) {
    const std::string newest = std::to_string(kNewestOpset);
    const std::string note = "The model uses ONNX opset " + std::to_string(*version) +
                             "; its operators are read as those of opset " + newest +
                             ", the newest that is known. Check the outputs (run --check).";
    if (std::ranges::find(graph_.notes, note) == graph_.notes.end()) graph_.notes.push_back(note);
    return kNewestOpset;
  }
  return *version;
}

// Refuses what the operator's version does not take, since it would be ignored silently.
Status Importer::check_version(const onnx::NodeProto& node, const std::string& op, int opset) const {
  NodeParts parts;
  std::vector<std::string_view> attributes;
  for (const auto& attribute : node.attribute()) attributes.push_back(attribute.name());
  parts.attributes = attributes;
  for (int i = 0; i < node.input_size(); ++i)
    if (!node.input(i).empty()) parts.inputs = i + 1;
  for (int i = 0; i < node.output_size(); ++i)
    if (!node.output(i).empty()) parts.outputs = i + 1;
  std::string fault = not_taken(op, opset, parts);
  // ONNX does not know the attributes of operators of other domains.
  const ExpandEntry* entry = find_expanded_operator(op);
  if (entry != nullptr && (op.find('.') != std::string::npos || !entry->attributes.empty())) {
    for (const std::string_view attribute : attributes)
      if (!has_word(entry->attributes, attribute) && !attribute.starts_with("__"))
        fault = op + " has no attribute '" + std::string(attribute) + "'";
  }
  if (fault.empty()) return {};
  return at_node(node, ErrorCode::kInvalidArgument, shown(fault));
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

// Returns the attributes of the function that a call may omit.
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
    for (const auto& attribute : node.attribute())
      collect_unsupported(attribute.g().node(), depth + 1, found);
    if (structural_operator(op) != nullptr || find_expanded_operator(op) != nullptr ||
        is_supported_operator(op) || find_function(node) != nullptr)
      continue;
    found[op].push_back(
        shown(node.name().empty() ? (node.output_size() > 0 ? node.output(0) : "") : node.name()));
  }
}

// Reports all unsupported operators in one error, so that a user sees everything that is missing.
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
  return graph_.values.push_back(std::move(value));
}

Status Importer::define(const std::string& name, Item item, Scope& scope) const {
  if (!scope.names.emplace(name, std::move(item)).second)
    return corrupt("the value '" + shown(name) + "' is defined twice");
  return {};
}

Result<std::optional<Item>> Importer::find_item(const std::string& name, const Scope& scope) {
  auto found = scope.find(name);
  if (!found) return std::optional<Item>();
  TS_ASSIGN_OR_RETURN(Item item, captured_item(std::move(found->first), found->second));
  return std::optional<Item>(std::move(item));
}

Result<Item> Importer::input_item(const onnx::NodeProto& node, const std::string& name, const Scope& scope) {
  if (name.empty()) return Item(kNoValue);
  TS_ASSIGN_OR_RETURN(std::optional<Item> item, find_item(name, scope));
  if (!item)
    return at_node(node, ErrorCode::kCorrupt,
                   "reads '" + shown(name) + "', which is not defined before this node");
  return *std::move(item);
}

Result<ValueId> Importer::input_value(const onnx::NodeProto& node, const std::string& name,
                                      const Scope& scope) {
  TS_ASSIGN_OR_RETURN(const Item item, input_item(node, name, scope));
  if (item.is_tensor()) return item.id;
  return at_node(node, ErrorCode::kCorrupt,
                 node.op_type() + ": '" + shown(name) + "' is " +
                     (item.kind == Item::Kind::kNone ? "an empty optional" : "a sequence") +
                     ", not a tensor");
}

Result<Attribute> Importer::read_attribute(const onnx::NodeProto& node, const onnx::AttributeProto& proto) {
  switch (proto.type()) {
    case onnx::AttributeProto::FLOAT:
      return Attribute(proto.f());
    case onnx::AttributeProto::INT:
      return Attribute(proto.i());
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
                         std::to_string(proto.type()) + ")");
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
        const auto bytes = std::ssize(tensor->data);
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

// Returns the value of a Constant node, which has one of several forms.
Result<lower::Tensor> constant_value(const std::map<std::string, Attribute>& attributes) {
  for (const auto& [name, attribute] : attributes) {
    if (const auto* tensor = std::get_if<lower::Tensor>(&attribute); name == "value" && tensor != nullptr) {
      return *tensor;
    }
    if (const auto* f = std::get_if<double>(&attribute); name == "value_float" && f != nullptr) {
      lower::Tensor number = vector_of(ir::DType::kF32, std::span(f, 1));
      number.shape.clear();
      return number;
    }
    if (const auto* i = std::get_if<int64_t>(&attribute); name == "value_int" && i != nullptr) {
      return scalar(ir::DType::kI64, *i);
    }
    if (const auto* f = std::get_if<std::vector<double>>(&attribute);
        name == "value_floats" && f != nullptr) {
      return vector_of(ir::DType::kF32, *f);
    }
    if (const auto* i = std::get_if<std::vector<int64_t>>(&attribute); name == "value_ints" && i != nullptr) {
      return vector(*i);
    }
  }
  return Error{ErrorCode::kUnsupported, "", "Constant without a numeric value"};
}

Status Importer::inline_function(const onnx::FunctionProto& function, const onnx::NodeProto& proto,
                                 Scope& scope, int depth) {
  TS_ASSIGN_OR_RETURN(auto arguments, read_attributes(proto, scope));
  TS_ASSIGN_OR_RETURN(auto defaults, default_attributes(function, proto));
  arguments.merge(std::move(defaults));
  TS_RETURN_IF_ERROR(count(function.input_size() + arguments.size()));
  Scope inner;
  inner.level = frames_.size();
  inner.arguments = &arguments;
  TS_ASSIGN_OR_RETURN(inner.opset, opset_of(function.opset_import()));
  if (proto.input_size() > function.input_size() || proto.output_size() > function.output_size()) {
    return at_node(proto, ErrorCode::kCorrupt, "has more inputs or outputs than its function");
  }
  for (int i = 0; i < function.input_size(); ++i) {
    const std::string given = i < proto.input_size() ? proto.input(i) : std::string();
    TS_ASSIGN_OR_RETURN(Item item, input_item(proto, given, scope));
    TS_RETURN_IF_ERROR(define(function.input(i), std::move(item), inner));
  }
  TS_RETURN_IF_ERROR(add_nodes(function.node(), inner, depth + 1));
  for (int i = 0; i < proto.output_size(); ++i) {
    TS_ASSIGN_OR_RETURN(const std::optional<Item> item, find_item(function.output(i), inner));
    if (!item || (item->is_tensor() && item->id == kNoValue))
      return at_node(proto, ErrorCode::kCorrupt, "an output of the function is not defined");
    if (!proto.output(i).empty()) TS_RETURN_IF_ERROR(define(proto.output(i), *item, scope));
  }
  return {};
}

// The node's outputs exist and are named; sets their dtypes, shapes and, if they can be computed,
// contents.
Status Importer::finish_node(Node node) {
  TS_RETURN_IF_ERROR(count(1 + node.inputs.size()));
  const auto narrow = narrow_.check(graph_, node);
  if (!narrow.ok()) return in_file(narrow.error());
  // Quantized weights stay integers, so that fuse_quantized can decide about them.
  FoldLimits none;
  none.max_bytes = -1;
  FoldLimits& limits = node.op == "DequantizeLinear" ? none : limits_;
  if (Status status = check_batch(overrides_, graph_, node); !status.ok())
    return in_file(std::move(status).error());
  if (Status status = infer_node(graph_, node, limits); !status.ok())
    return in_file(std::move(status).error());
  if (Status status = bounds_.propagate(graph_, node); !status.ok())
    return in_file(std::move(status).error());
  bool folded = true;
  for (ValueId id : node.outputs) {
    if (id == kNoValue) continue;
    folded = folded && value(id).constant != nullptr;
    narrow_.mark(id, *narrow);
  }
  if (!folded) graph_.nodes.push_back(std::move(node));
  return {};
}

Result<std::vector<ValueId>> Importer::add(Node node, size_t outputs) {
  for (size_t i = 0; i < outputs; ++i)
    node.outputs.push_back(add_value(i == 0 ? node.name : node.name + "." + std::to_string(i)));
  std::vector<ValueId> made = node.outputs;
  TS_RETURN_IF_ERROR(finish_node(std::move(node)));
  return made;
}

ValueId Importer::constant(lower::Tensor tensor) {
  const ValueId id = add_value("constant_" + std::to_string(graph_.values.size()));
  Value& value = graph_.values.back();
  value.dtype = tensor.dtype;
  value.shape = tensor.shape;
  value.constant = std::make_shared<const lower::Tensor>(std::move(tensor));
  return id;
}

// Adds an operator that becomes several nodes; the values of its outputs get the model's names.
Status Importer::expand_node(const ExpandEntry& entry, const Node& node, const onnx::NodeProto& proto,
                             Scope& scope) {
  WorkloadBuilder builder;
  std::vector<ir::Buffer> inputs;
  for (ValueId id : node.inputs) {
    inputs.push_back(id == kNoValue ? nullptr
                                    : builder.placeholder("in", value(id).dtype, value(id).shape, false));
  }
  OpContext ctx(graph_, node, inputs, builder);
  Status status = check_signature(ctx, entry.signature);
  if (!status.ok()) return in_file(std::move(status).error());
  Expansion expansion(*this, node, ctx);
  auto outputs = entry.expand(expansion);
  // Errors of the added nodes already name the file.
  if (!outputs.ok()) {
    Error error = std::move(outputs).error();
    return error.place.starts_with(place_) ? error : in_file(std::move(error));
  }
  if (ctx.error()) return in_file(*ctx.error());
  for (int i = 0; i < proto.output_size(); ++i) {
    if (proto.output(i).empty()) continue;
    if (i >= std::ssize(*outputs) || (*outputs)[i] == kNoValue)
      return at_node(proto, ErrorCode::kUnsupported,
                     node.op + ": output " + std::to_string(i) + " is not supported");
    TS_RETURN_IF_ERROR(define(proto.output(i), (*outputs)[i], scope));
  }
  return {};
}

Status Importer::add_node(const onnx::NodeProto& proto, Scope& scope, int depth) {
  TS_RETURN_IF_ERROR(count(size_t{1} + proto.input_size() + proto.output_size() + proto.attribute_size()));
  if (proto.input_size() > kMaxNodeValues || proto.output_size() > kMaxNodeValues)
    return at_node(proto, ErrorCode::kResourceExhausted,
                   "has more than " + std::to_string(kMaxNodeValues) +
                       " inputs or outputs; split it into several nodes");
  const std::string op = full_op(proto.domain(), proto.op_type());
  TS_RETURN_IF_ERROR(check_version(proto, op, scope.opset));
  if (const Structural structural = structural_operator(op); structural != nullptr)
    return (this->*structural)(proto, scope, depth);
  const ExpandEntry* expanded = find_expanded_operator(op);
  if (const onnx::FunctionProto* function = find_function(proto);
      function != nullptr && !is_supported_operator(op) && expanded == nullptr) {
    return inline_function(*function, proto, scope, depth);
  }
  if (op == "Identity" && proto.input_size() == 1 && proto.output_size() == 1) {
    TS_ASSIGN_OR_RETURN(Item item, input_item(proto, proto.input(0), scope));
    if (!item.is_tensor()) return define(proto.output(0), std::move(item), scope);
  }
  const OpEntry* entry = find_operator(op);
  if (scope.opset < (entry != nullptr      ? entry->oldest_opset
                     : expanded != nullptr ? expanded->oldest_opset
                                           : 0)) {
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
  if (expanded != nullptr) {
    for (const std::string& name : proto.output())
      node.outputs.push_back(name.empty() ? kNoValue : ValueId(0));
    return expand_node(*expanded, node, proto, scope);
  }
  for (const std::string& name : proto.output())
    node.outputs.push_back(name.empty() ? kNoValue : add_value(name));
  while (!node.outputs.empty() && node.outputs.back() == kNoValue) node.outputs.pop_back();
  if (node.outputs.empty()) return {};

  if (op == "Constant") {
    auto value = constant_value(node.attributes);
    if (!value.ok()) return at_node(proto, value.error().code, value.error().reason);
    Value& output = graph_.values[node.outputs[0]];
    output.dtype = value->dtype;
    output.shape = value->shape;
    output.constant = std::make_shared<const lower::Tensor>(*std::move(value));
    for (const auto& attribute : proto.attribute())
      narrow_.mark(node.outputs[0], find_narrow(attribute.t().data_type()));
    return define(output.name, node.outputs[0], scope);
  }
  std::vector<ValueId> outputs = node.outputs;
  if (find_fold_operator(op) != nullptr) {
    TS_RETURN_IF_ERROR(add_data_dependent(std::move(node)));
  } else if (converts_narrow_float(node)) {
    TS_RETURN_IF_ERROR(convert_narrow_float(node));
  } else {
    TS_RETURN_IF_ERROR(finish_node(std::move(node)));
  }
  for (ValueId id : outputs)
    if (id != kNoValue) TS_RETURN_IF_ERROR(define(value(id).name, id, scope));
  return {};
}

Status Importer::add_nodes(const NodeList& nodes, Scope& scope, int depth) {
  if (depth > kMaxDepth) return corrupt("subgraphs or functions are nested too deeply");
  for (const auto& node : nodes) TS_RETURN_IF_ERROR(add_node(node, scope, depth));
  return {};
}

// Extends a node's error if the model would work with the shapes that it declares.
Error Importer::explain_overrides(Error error) const {
  if (overrides_.empty()) return error;
  ImportOptions declared = options_;
  for (const ShapeOverride& o : overrides_) declared.shapes[o.input] = o.declared;
  if (Importer(model_, declared, place_, source_).run().ok()) error.reason += explain(overrides_);
  return error;
}

Result<Graph> Importer::run() {
  const onnx::GraphProto& proto = model_.graph();
  if (!model_.has_graph() || proto.output_size() == 0) {
    return corrupt("is not an ONNX model: it has no graph with outputs");
  }
  graph_.name = proto.name();
  Scope scope;
  if (model_.ir_version() > kNewestIrVersion) {
    return Error{ErrorCode::kUnsupported, place_,
                 "the model has version " + std::to_string(model_.ir_version()) +
                     " of ONNX's file format (IR), but the newest supported version is " +
                     std::to_string(kNewestIrVersion) + "; export it with an older version of ONNX"};
  }
  TS_RETURN_IF_ERROR(collect_functions());
  TS_RETURN_IF_ERROR(check_operators());
  TS_ASSIGN_OR_RETURN(scope.opset, opset_of(model_.opset_import()));
  TS_RETURN_IF_ERROR(add_initializers(proto, scope));
  TS_RETURN_IF_ERROR(add_inputs(scope));
  if (Status status = add_nodes(proto.node(), scope, 0); !status.ok())
    return explain_overrides(std::move(status).error());
  TS_RETURN_IF_ERROR(add_outputs(scope));
  return std::move(graph_);
}

Result<onnx::ModelProto> parse_model(std::string_view bytes, const std::string& place) {
  // Keeps Protobuf from writing its own messages to the standard error stream.
  const google::protobuf::LogSilencer silencer;
  onnx::ModelProto model;
  if (const Status parsed = parse_message(bytes, WireMessage::kModel, model); !parsed.ok()) {
    if (parsed.error().code != ErrorCode::kCorrupt)
      return Error{parsed.error().code, place, parsed.error().reason};
    return Error{
        ErrorCode::kCorrupt, place,
        "is not an ONNX model (it is truncated, damaged or has another format); export or download it again"};
  }
  return model;
}

namespace {

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

Result<Graph> import_onnx_bytes(std::string_view bytes, const ImportOptions& options,
                                const std::string& display_name) {
  return import_message(bytes, options, display_name, TensorSource{});
}

}  // namespace tensorsmith::graph
