// The boundary of a model: initializers, inputs, outputs.
#include <algorithm>
#include <set>

#include "base/nearest.h"
#include "graph/onnx/fixed_inputs.h"
#include "graph/onnx/importer.h"

namespace tensorsmith::graph {

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
    narrow_.mark(id, find_narrow(proto.data_type()));
    TS_RETURN_IF_ERROR(define(proto.name(), id, scope));
  }
  return {};
}

namespace {

// Returns the tensor type inside optionals and sequences; null if there is none.
const onnx::TypeProto::Tensor* tensor_in(const onnx::TypeProto& type) {
  if (type.has_tensor_type()) return &type.tensor_type();
  if (type.has_optional_type()) return tensor_in(type.optional_type().elem_type());
  if (type.has_sequence_type()) return tensor_in(type.sequence_type().elem_type());
  return nullptr;
}

bool is_sequence(const onnx::TypeProto& type) {
  return type.has_optional_type() ? is_sequence(type.optional_type().elem_type()) : type.has_sequence_type();
}

// Returns whether `text` is NAME[0], NAME[1], ...
bool is_element(const std::string& text, const std::string& name) {
  if (!text.starts_with(name + "[") || !text.ends_with("]")) return false;
  const std::string number = text.substr(name.size() + 1, text.size() - name.size() - 2);
  return !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "'" : ", '") + shown(name) + "'";
  return out;
}

template <class T>
std::vector<std::string> keys_of(const std::map<std::string, T>& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

// Suggestion that follows the name of something that the model does not have.
std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  return near.empty() ? "" : " (did you mean '" + shown(near) + "'?)";
}

std::vector<DeclaredDimension> dimensions(const onnx::TypeProto::Tensor& type) {
  std::vector<DeclaredDimension> out;
  for (const auto& dim : type.shape().dim())
    out.push_back({dim.has_dim_value() ? std::max<int64_t>(dim.dim_value(), -1) : -1, dim.dim_param()});
  return out;
}

// Formats an input, for example "'x' [1, 3, height, ?]".
std::string text_of(const OpenInput& input) {
  const std::string name = shown(input.name);
  std::string out = "'" + name + "'";
  if (input.is_sequence) out += " (a sequence of tensors '" + name + "[0]', '" + name + "[1]', ...)";
  if (!input.shape) return input.is_sequence ? out : out + " (any shape)";
  std::string dims;
  for (const DeclaredDimension& dim : *input.shape) {
    dims += dims.empty() ? "" : ", ";
    dims += dim.length >= 0 ? std::to_string(dim.length) : dim.name.empty() ? "?" : shown(dim.name);
  }
  return out + " [" + dims + "]";
}

}  // namespace

// Returns the dimensions in the file, unless an option gives others: for open ones, or to replace
// fixed ones. An input that stays open is recorded and gets extents of 1.
Result<Shape> Importer::input_shape(const std::string& name, const onnx::TypeProto::Tensor& type) {
  const auto given = options_.shapes.find(name);
  if (!type.has_shape() && given == options_.shapes.end()) {
    open_.push_back({name, std::nullopt});
    return Shape{};
  }
  std::vector<DeclaredDimension> dims = dimensions(type);
  Shape shape;
  for (DeclaredDimension& dim : dims) {
    const auto known = known_dims_.find(dim.name);
    if (dim.length < 0 && !dim.name.empty() && known != known_dims_.end()) dim.length = known->second;
    shape.push_back(dim.length);
  }
  if (given != options_.shapes.end()) {
    if (type.has_shape() && given->second.size() != shape.size()) {
      return Error{ErrorCode::kInvalidArgument, place_,
                   "the given shape of input '" + name + "' has " + std::to_string(given->second.size()) +
                       " dimensions, the model's " + std::to_string(shape.size())};
    }
    ShapeOverride fixed{name, given->second, given->second};
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] < 0 || shape[d] == given->second[d]) continue;
      const auto& dim = type.shape().dim(d);
      if (!dim.has_dim_value()) {
        return Error{ErrorCode::kInvalidArgument, place_,
                     "the given shape of input '" + name + "' has " + std::to_string(given->second[d]) +
                         " in dimension " + std::to_string(d) + ", which ('" + dim.dim_param() +
                         "') is given as " + std::to_string(shape[d]) + " elsewhere"};
      }
      fixed.declared[d] = shape[d];
    }
    if (fixed.declared != fixed.given) {
      graph_.notes.push_back(describe(fixed));
      overrides_.push_back(std::move(fixed));
    }
    shape = given->second;
  } else if (std::any_of(dims.begin(), dims.end(), [](const auto& dim) { return dim.length < 0; })) {
    open_.push_back({name, std::move(dims)});
    return Shape(shape.size(), 1);
  }
  if (!is_reasonable(shape)) {
    return Error{ErrorCode::kInvalidArgument, place_,
                 "input '" + name + "' has an unreasonable shape: " + describe(ir::DType::kF32, shape)};
  }
  return shape;
}

// Returns the contents that an option gives the input; nothing if there are none.
Result<std::optional<lower::Tensor>> Importer::fixed_contents(const std::string& name, ir::DType dtype,
                                                              const onnx::TypeProto::Tensor& type) const {
  const auto tensor = options_.constant_inputs.find(name);
  if (tensor != options_.constant_inputs.end()) {
    if (tensor->second.dtype == dtype && is_reasonable(tensor->second.shape))
      return std::optional(tensor->second);
    return Error{ErrorCode::kInvalidArgument, place_,
                 "the given contents of input '" + name + "' are " +
                     describe(tensor->second.dtype, tensor->second.shape) + ", but the model declares " +
                     std::string(ir::to_string(dtype))};
  }
  const auto text = options_.constant_texts.find(name);
  if (text == options_.constant_texts.end()) return std::optional<lower::Tensor>();
  std::optional<Shape> lengths;
  if (const auto given = options_.shapes.find(name); given != options_.shapes.end()) {
    lengths = given->second;
    if (type.has_shape() && type.shape().dim_size() != std::ssize(*lengths))
      return Error{ErrorCode::kInvalidArgument, place_,
                   "the given shape of input '" + name + "' has " + std::to_string(lengths->size()) +
                       " dimensions, the model's " + std::to_string(type.shape().dim_size())};
  } else if (type.has_shape()) {
    lengths.emplace();
    for (const DeclaredDimension& dim : dimensions(type)) {
      const auto known = known_dims_.find(dim.name);
      lengths->push_back(dim.length < 0 && !dim.name.empty() && known != known_dims_.end() ? known->second
                                                                                           : dim.length);
    }
  }
  auto made = tensor_of_text(text->second, dtype, lengths);
  if (made.ok()) return std::optional(*std::move(made));
  return Error{made.error().code, place_,
               "the given contents of input '" + name + "': " + made.error().reason};
}

Result<ValueId> Importer::add_tensor_input(const std::string& name, const onnx::TypeProto::Tensor& type) {
  const NarrowType* narrow = find_narrow(type.elem_type());
  const auto dtype = narrow != nullptr ? std::optional(narrow->held) : onnx_dtype(type.elem_type());
  if (!dtype) {
    return Error{
        ErrorCode::kUnsupported, place_,
        "input '" + name + "' has type " + onnx_type_name(type.elem_type()) + ", which is not supported"};
  }
  const ValueId id = add_value(name);
  narrow_.mark(id, narrow);
  TS_ASSIGN_OR_RETURN(std::optional<lower::Tensor> fixed, fixed_contents(name, *dtype, type));
  if (fixed) {
    Value& value = graph_.values.back();
    value.dtype = fixed->dtype;
    value.shape = fixed->shape;
    value.constant = std::make_shared<const lower::Tensor>(*std::move(fixed));
    return id;
  }
  TS_ASSIGN_OR_RETURN(graph_.values.back().shape, input_shape(name, type));
  graph_.values.back().dtype = *dtype;
  graph_.inputs.push_back(id);
  return id;
}

// A sequence has as many elements as shapes (or contents) are given for its tensors NAME[0],
// NAME[1], ... An optional is present unless the options say that it is absent. `names` collects
// the names that a shape may be given for.
Result<Item> Importer::add_input(const std::string& name, const onnx::TypeProto& type,
                                 std::set<std::string>& names) {
  if (type.has_tensor_type()) {
    TS_ASSIGN_OR_RETURN(const ValueId id, add_tensor_input(name, type.tensor_type()));
    return Item(id);
  }
  if (type.has_optional_type()) {
    if (options_.absent.contains(name)) return Item::none();
    if (type.optional_type().elem_type().has_optional_type())
      return corrupt("input '" + name + "' is an optional of an optional");
    return add_input(name, type.optional_type().elem_type(), names);
  }
  if (!type.has_sequence_type() || !type.sequence_type().elem_type().has_tensor_type()) {
    return Error{ErrorCode::kUnsupported, place_,
                 "input '" + name + "' is neither a tensor nor a sequence of tensors"};
  }
  if (options_.absent.contains(name)) return Item::sequence({});
  std::vector<ValueId> elements;
  for (;;) {
    const std::string element = name + "[" + std::to_string(elements.size()) + "]";
    if (!options_.shapes.contains(element) && !options_.constant_inputs.contains(element) &&
        !options_.constant_texts.contains(element))
      break;
    names.insert(element);
    TS_ASSIGN_OR_RETURN(const ValueId id,
                        add_tensor_input(element, type.sequence_type().elem_type().tensor_type()));
    elements.push_back(id);
  }
  if (elements.empty()) {
    const auto& element = type.sequence_type().elem_type().tensor_type();
    open_.push_back({name, std::nullopt, true});
    if (element.has_shape()) open_.back().shape = dimensions(element);
  }
  return Item::sequence(std::move(elements));
}

Status Importer::check_given_names(const Scope& scope) const {
  std::vector<std::string> inputs, dims;
  std::set<std::string> accepted;
  for (const auto& info : model_.graph().input()) {
    if (scope.names.contains(info.name())) continue;  // an initializer
    const bool sequence = is_sequence(info.type());
    inputs.push_back(sequence ? info.name() + "[0]" : info.name());
    for (const auto& [name, shape] : options_.shapes)
      if (sequence ? is_element(name, info.name()) : name == info.name()) accepted.insert(name);
    const auto* tensor = tensor_in(info.type());
    if (tensor == nullptr) continue;
    for (const auto& dim : tensor->shape().dim()) {
      if (!dim.dim_param().empty() && std::find(dims.begin(), dims.end(), dim.dim_param()) == dims.end())
        dims.push_back(dim.dim_param());
    }
  }
  for (const auto& [name, shape] : options_.shapes) {
    if (accepted.contains(name)) continue;
    return Error{ErrorCode::kInvalidArgument, place_,
                 "a shape is given for '" + name + "', but the model has no input of this name" +
                     suggestion(name, inputs) + "; its inputs are " + quoted_list(inputs)};
  }
  for (const auto& [name, length] : options_.dims) {
    const std::string given = "a length is given for the dimension '" + name + "', ";
    if (dims.empty())
      return Error{ErrorCode::kInvalidArgument, place_,
                   given + "but no input of the model has a symbolic dimension; give inputs their shapes"};
    if (std::find(dims.begin(), dims.end(), name) == dims.end())
      return Error{ErrorCode::kInvalidArgument, place_,
                   given + "but no input has a dimension of this name" + suggestion(name, dims) +
                       "; the symbolic dimensions are " + quoted_list(dims)};
    if (length < 1)
      return Error{ErrorCode::kInvalidArgument, place_,
                   given + "which is " + std::to_string(length) + "; a length is at least 1"};
  }
  return {};
}

Error Importer::open_inputs_error() const {
  std::string list;
  for (const OpenInput& input : open_) list += (list.empty() ? "" : ", ") + text_of(input);
  const std::string advice = options_.shape_advice ? options_.shape_advice(open_) : "";
  return {ErrorCode::kInvalidArgument, place_,
          (open_.size() == 1 ? "the model leaves the shape of an input open: "
                             : "the model leaves the shapes of inputs open: ") +
              list + (advice.empty() ? "" : "; ") + advice};
}

Status Importer::add_inputs(Scope& scope) {
  TS_RETURN_IF_ERROR(check_given_names(scope));
  known_dims_ = options_.dims;
  // Given shapes also resolve named dimensions of the other inputs.
  for (const auto& info : model_.graph().input()) {
    const auto given = options_.shapes.find(info.name());
    if (given == options_.shapes.end()) continue;
    const auto& dims = info.type().tensor_type().shape().dim();
    for (int d = 0; d < dims.size() && d < std::ssize(given->second); ++d) {
      if (!dims.Get(d).dim_param().empty()) {
        known_dims_.emplace(dims.Get(d).dim_param(), given->second[d]);
      }
    }
  }
  std::set<std::string> names;
  for (const auto& info : model_.graph().input()) {
    if (scope.names.contains(info.name())) continue;  // an initializer, listed among the inputs before IR 4
    names.insert(info.name());
    if (info.name().empty()) return corrupt("an input has no name");
    TS_ASSIGN_OR_RETURN(Item item, add_input(info.name(), info.type(), names));
    TS_RETURN_IF_ERROR(define(info.name(), std::move(item), scope));
  }
  if (!open_.empty()) return open_inputs_error();
  for (const std::string& name : options_.absent) {
    const auto item = scope.names.find(name);
    if (item == scope.names.end() || item->second.is_tensor() || !item->second.elements.empty()) {
      return Error{ErrorCode::kInvalidArgument, place_,
                   "'" + name + "' is given as absent, but is not an optional or sequence input"};
    }
  }
  for (const auto& given : {keys_of(options_.constant_inputs), keys_of(options_.constant_texts)}) {
    for (const std::string& name : given) {
      if (names.contains(name)) continue;
      const std::vector<std::string> known(names.begin(), names.end());
      return Error{ErrorCode::kInvalidArgument, place_,
                   "contents are given for '" + name + "', but the model has no input of this name" +
                       suggestion(name, known) + "; its inputs are " + quoted_list(known)};
    }
  }
  for (const auto& [name, shape] : options_.shapes) {
    if (names.contains(name)) continue;
    return Error{ErrorCode::kInvalidArgument, place_,
                 "a shape is given for '" + name + "', but not for all tensors of the sequence before it"};
  }
  return {};
}

// Each output is a separate value with the output's name. An input, or a value that is an output
// already, is copied; a value made by a subgraph, a function or an expansion is renamed.
Status Importer::add_output(ValueId id, const std::string& name) {
  Value& value = graph_.values[id];
  const auto in = [&](const std::vector<ValueId>& list) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  if (in(graph_.inputs) || in(graph_.outputs)) {
    Node node{name, "Identity", kNewestOpset, {}, {id}, {add_value(name)}};
    graph_.outputs.push_back(node.outputs[0]);
    return finish_node(std::move(node));
  }
  value.name = name;
  graph_.outputs.push_back(id);
  return {};
}

// The tensors of a sequence are the outputs NAME[0], NAME[1], ... The number of data rows of a
// padded output is the output NAME.count.
Status Importer::add_outputs(const Scope& scope) {
  std::set<std::string> names;
  for (const auto& output : model_.graph().output()) {
    const auto found = scope.find(output.name());
    const std::optional<Item> item = found ? std::optional(found->first) : std::nullopt;
    if (!item || (item->is_tensor() && item->id == kNoValue))
      return corrupt("nothing computes the output '" + shown(output.name()) + "'");
    if (!names.insert(output.name()).second)
      return corrupt("the output '" + shown(output.name()) + "' is listed twice");
    if (item->is_tensor()) TS_RETURN_IF_ERROR(add_output(item->id, output.name()));
    for (size_t i = 0; i < item->elements.size(); ++i)
      TS_RETURN_IF_ERROR(add_output(item->elements[i], output.name() + "[" + std::to_string(i) + "]"));
  }
  const std::vector<ValueId> listed = graph_.outputs;
  for (ValueId id : listed) {
    const Bounds::Dims* dims = bounds_.of(id);
    if (dims == nullptr) continue;
    const Bounds::Dims known = *dims;
    for (const auto& [dim, count] : known) {
      const std::string suffix = known.size() == 1 ? "" : "." + std::to_string(dim);
      TS_RETURN_IF_ERROR(add_output(count, value(id).name + ".count" + suffix));
    }
  }
  if (graph_.outputs.empty())
    return Error{ErrorCode::kUnsupported, place_, "all outputs are optionals or sequences that are empty"};
  return {};
}

}  // namespace tensorsmith::graph
