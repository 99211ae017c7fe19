// Sequences and optionals, as lists whose length is known while the model is imported.
#include <algorithm>
#include <map>

#include "graph/onnx/importer.h"

namespace tensorsmith::graph {

namespace {

// Most tensors that one SplitToSequence makes: a few bytes of a model could request any number.
constexpr int64_t kMaxSequence = 1 << 14;

int64_t integer(const onnx::NodeProto& proto, const std::string& name, int64_t otherwise) {
  for (const auto& attribute : proto.attribute())
    if (attribute.name() == name && attribute.type() == onnx::AttributeProto::INT) return attribute.i();
  return otherwise;
}

}  // namespace

Importer::Structural Importer::structural_operator(const std::string& op) {
  static const std::map<std::string, Structural> kOperators = {
      {"If", &Importer::inline_if},
      {"Loop", &Importer::inline_loop},
      {"Scan", &Importer::inline_scan},
      {"SequenceMap", &Importer::inline_sequence_map},
      {"ConcatFromSequence", &Importer::sequence_operator},
      {"SequenceAt", &Importer::sequence_operator},
      {"SequenceConstruct", &Importer::sequence_operator},
      {"SequenceEmpty", &Importer::sequence_operator},
      {"SequenceErase", &Importer::sequence_operator},
      {"SequenceInsert", &Importer::sequence_operator},
      {"SequenceLength", &Importer::sequence_operator},
      {"SplitToSequence", &Importer::sequence_operator},
      {"Optional", &Importer::optional_operator},
      {"OptionalGetElement", &Importer::optional_operator},
      {"OptionalHasElement", &Importer::optional_operator},
  };
  const auto found = kOperators.find(op);
  return found == kOperators.end() ? nullptr : found->second;
}

Result<std::vector<Item>> Importer::items_of(const onnx::NodeProto& proto, const Scope& scope) {
  std::vector<Item> items;
  for (const std::string& name : proto.input()) {
    TS_ASSIGN_OR_RETURN(Item item, input_item(proto, name, scope));
    items.push_back(std::move(item));
  }
  return items;
}

Result<std::vector<ValueId>> Importer::elements_of(const onnx::NodeProto& proto, const Item& item) const {
  if (item.kind == Item::Kind::kSequence) return item.elements;
  return at_node(proto, ErrorCode::kCorrupt, proto.op_type() + ": input 0 must be a sequence");
}

Result<int64_t> Importer::known_integer(const onnx::NodeProto& proto, const Item& item,
                                        const std::string& what) const {
  const lower::Tensor* known = item.is_tensor() ? constant_of(item.id) : nullptr;
  if (item.is_tensor() && item.id != kNoValue && known == nullptr) {
    return at_node(proto, ErrorCode::kUnsupported,
                   proto.op_type() + ": " + what + " must be constant; it is only known at run time");
  }
  if (known == nullptr || known->num_elements() != 1 || !ir::is_int(known->dtype))
    return at_node(proto, ErrorCode::kInvalidArgument,
                   proto.op_type() + ": " + what + " must be one integer");
  return known->at(0).i;
}

Status Importer::sequence_operator(const onnx::NodeProto& proto, Scope& scope, int) {
  const std::string& op = proto.op_type();
  if (proto.output_size() != 1 || proto.output(0).empty())
    return at_node(proto, ErrorCode::kCorrupt, op + " needs one output");
  TS_ASSIGN_OR_RETURN(const std::vector<Item> inputs, items_of(proto, scope));
  const auto given = [&](size_t i) {
    return i < inputs.size() && !(inputs[i].is_tensor() && inputs[i].id == kNoValue);
  };
  const auto tensor = [&](size_t i) -> Result<ValueId> {
    if (given(i) && inputs[i].is_tensor()) return inputs[i].id;
    return at_node(proto, ErrorCode::kCorrupt, op + ": input " + std::to_string(i) + " must be a tensor");
  };
  const auto finish = [&](Item item) { return define(proto.output(0), std::move(item), scope); };
  if (op == "SequenceEmpty") return finish(Item::sequence({}));
  if (op == "SequenceConstruct") {
    std::vector<ValueId> elements;
    for (size_t i = 0; i < inputs.size(); ++i) {
      TS_ASSIGN_OR_RETURN(const ValueId id, tensor(i));
      elements.push_back(id);
    }
    return finish(Item::sequence(std::move(elements)));
  }
  if (inputs.empty()) return at_node(proto, ErrorCode::kCorrupt, op + " needs an input");
  if (op == "SplitToSequence") return split_to_sequence(proto, inputs, scope);
  TS_ASSIGN_OR_RETURN(std::vector<ValueId> elements, elements_of(proto, inputs[0]));
  const auto length = std::ssize(elements);
  if (op == "SequenceLength") return finish(constant(scalar(ir::DType::kI64, length)));
  if (op == "ConcatFromSequence") {
    if (elements.empty()) return at_node(proto, ErrorCode::kUnsupported, op + ": the sequence is empty");
    const int64_t axis = integer(proto, "axis", 0);
    if (integer(proto, "new_axis", 0) != 0) {
      TS_ASSIGN_OR_RETURN(const ValueId stacked, stack(proto, elements, axis));
      return finish(stacked);
    }
    TS_ASSIGN_OR_RETURN(const ValueId joined, add_one(name_of(proto), "Concat", elements, {{"axis", axis}}));
    return finish(joined);
  }
  // The other operators have a position; its default is the end (to insert) or the last element.
  const bool inserts = op == "SequenceInsert";
  const size_t at = inserts ? 2 : 1;
  int64_t place = inserts ? length : length - 1;
  if (given(at)) {
    TS_ASSIGN_OR_RETURN(place, known_integer(proto, inputs[at], "the position"));
    if (place < 0) place += length;
  } else if (op == "SequenceAt") {
    return at_node(proto, ErrorCode::kCorrupt, "SequenceAt: the position is missing");
  }
  if (place < 0 || place > (inserts ? length : length - 1)) {
    return at_node(proto, ErrorCode::kInvalidArgument,
                   op + ": position " + std::to_string(place) + " is out of range for a sequence of " +
                       std::to_string(length));
  }
  if (op == "SequenceAt") return finish(elements[place]);
  if (inserts) {
    TS_ASSIGN_OR_RETURN(const ValueId id, tensor(1));
    elements.insert(elements.begin() + place, id);
  } else {
    elements.erase(elements.begin() + place);
  }
  return finish(Item::sequence(std::move(elements)));
}

Status Importer::split_to_sequence(const onnx::NodeProto& proto, const std::vector<Item>& inputs,
                                   Scope& scope) {
  if (!inputs[0].is_tensor() || inputs[0].id == kNoValue)
    return at_node(proto, ErrorCode::kCorrupt, "SplitToSequence: input 0 must be a tensor");
  const Shape shape = value(inputs[0].id).shape;
  const auto rank = std::ssize(shape);
  int64_t axis = integer(proto, "axis", 0);
  if (axis < -rank || axis >= rank)
    return at_node(proto, ErrorCode::kInvalidArgument, "SplitToSequence: the axis is out of range");
  if (axis < 0) axis += rank;
  const int64_t extent = shape[axis];
  const bool whole = inputs.size() > 1 && inputs[1].is_tensor() && inputs[1].id != kNoValue;
  const bool drop = !whole && integer(proto, "keepdims", 1) == 0;
  const auto too_many = [&] {
    return at_node(proto, ErrorCode::kUnsupported,
                   "SplitToSequence: it would make more than " + std::to_string(kMaxSequence) + " tensors");
  };
  std::vector<int64_t> lengths;
  if (!whole) {
    if (extent > kMaxSequence) return too_many();
    lengths.assign(extent, 1);
  } else if (value(inputs[1].id).shape.empty()) {
    TS_ASSIGN_OR_RETURN(const int64_t each, known_integer(proto, inputs[1], "input 1 (split)"));
    if (each < 1)
      return at_node(proto, ErrorCode::kInvalidArgument, "SplitToSequence: split must be positive");
    if ((extent - 1) / each >= kMaxSequence) return too_many();
    for (int64_t begin = 0; begin < extent; begin += std::min(each, extent))
      lengths.push_back(std::min(each, extent - begin));
  } else {
    const lower::Tensor* known = constant_of(inputs[1].id);
    if (known == nullptr || !ir::is_int(known->dtype))
      return at_node(proto, ErrorCode::kUnsupported,
                     "SplitToSequence: input 1 (split) must be constant; it is only known at run time");
    if (known->num_elements() > kMaxSequence) return too_many();
    for (int64_t i = 0; i < known->num_elements(); ++i) lengths.push_back(known->at(i).i);
  }
  int64_t total = 0;
  bool fits = true;
  for (int64_t length : lengths) {
    fits = fits && length >= 0 && length <= extent - total;
    if (fits) total += length;
  }
  if (!fits || total != extent) {
    return at_node(proto, ErrorCode::kInvalidArgument,
                   "SplitToSequence: the lengths do not add up to " + std::to_string(extent));
  }
  std::vector<ValueId> elements;
  int64_t begin = 0;
  for (int64_t length : lengths) {
    TS_ASSIGN_OR_RETURN(ValueId part,
                        add_one(name_of(proto), "Slice",
                                {inputs[0].id, constant(vector({begin})), constant(vector({begin + length})),
                                 constant(vector({axis}))}));
    if (drop) {
      TS_ASSIGN_OR_RETURN(part, add_one(name_of(proto), "Squeeze", {part, constant(vector({axis}))}));
    }
    elements.push_back(part);
    begin += length;
  }
  return define(proto.output(0), Item::sequence(std::move(elements)), scope);
}

Status Importer::optional_operator(const onnx::NodeProto& proto, Scope& scope, int) {
  const std::string& op = proto.op_type();
  if (proto.output_size() != 1 || proto.output(0).empty())
    return at_node(proto, ErrorCode::kCorrupt, op + " needs one output");
  TS_ASSIGN_OR_RETURN(const std::vector<Item> inputs, items_of(proto, scope));
  const bool there = !inputs.empty() && inputs[0].kind != Item::Kind::kNone &&
                     !(inputs[0].is_tensor() && inputs[0].id == kNoValue);
  if (op == "OptionalHasElement")
    return define(proto.output(0), constant(scalar(ir::DType::kBool, there ? 1 : 0)), scope);
  if (op == "Optional") return define(proto.output(0), there ? inputs[0] : Item::none(), scope);
  if (!there) return at_node(proto, ErrorCode::kInvalidArgument, op + ": the optional is empty");
  return define(proto.output(0), inputs[0], scope);
}

}  // namespace tensorsmith::graph
