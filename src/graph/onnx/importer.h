// The importer of ONNX models: names, nodes, control flow, sequences. Only files in this folder
// include this header, because it exposes protobuf.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/infer.h"
#include "graph/onnx/bounded.h"
#include "graph/onnx/expand.h"
#include "graph/onnx/narrow.h"
#include "graph/onnx/operator_versions.h"
#include "graph/onnx/shape_overrides.h"
#include "graph/onnx/tensor.h"
#include "graph/ops/op_context.h"

namespace tensorsmith::graph {

// The object that a name refers to. Sequences are lists of known length, and it is known whether
// optionals have a value: neither exists after the import.
struct Item {
  enum class Kind { kTensor, kSequence, kNone };

  Item() = default;
  Item(ValueId value) : id(value) {}  // NOLINT(google-explicit-constructor)
  static Item sequence(std::vector<ValueId> elements) {
    Item item;
    item.kind = Kind::kSequence;
    item.elements = std::move(elements);
    return item;
  }
  static Item none() {
    Item item;
    item.kind = Kind::kNone;
    return item;
  }
  bool is_tensor() const { return kind == Kind::kTensor; }

  Kind kind = Kind::kTensor;
  ValueId id = kNoValue;          // for a tensor; kNoValue is an omitted input
  std::vector<ValueId> elements;  // for a sequence
};

// Names visible at a node: those of a subgraph include the enclosing ones.
struct Scope {
  const Scope* parent = nullptr;
  size_t level = 0;  // number of bodies around the graph that the names belong to
  std::map<std::string, Item> names;
  int opset = 0;
  const std::map<std::string, Attribute>* arguments = nullptr;  // attributes of a function call

  // Returns the item with the level of its graph.
  std::optional<std::pair<Item, size_t>> find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
      const auto found = scope->names.find(name);
      if (found != scope->names.end()) return std::pair(found->second, scope->level);
    }
    return std::nullopt;
  }
};

// Shortens names in messages, so that a message is a line.
inline std::string shown(const std::string& name) {
  constexpr size_t kMaxShownName = 160;
  return name.size() <= kMaxShownName ? name : name.substr(0, kMaxShownName) + "...";
}

// Parses a model; `place` is the file name for errors (kCorrupt).
Result<onnx::ModelProto> parse_model(std::string_view bytes, const std::string& place);

class Importer final : public NodeSink {
 public:
  Importer(const onnx::ModelProto& model, const ImportOptions& options, std::string place,
           TensorSource source);

  Result<Graph> run();

  // NodeSink: adds nodes that stand for a node of the model.
  const Graph& graph() const override { return graph_; }
  Result<std::vector<ValueId>> add(Node node, size_t outputs) override;
  ValueId constant(lower::Tensor tensor) override;

 private:
  using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
  using Structural = Status (Importer::*)(const onnx::NodeProto&, Scope&, int depth);

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
  static constexpr size_t kMaxShownReason = 600;

  // import.cc
  // Returns the opset that the operators are read as: at most kNewestOpset, with a note.
  Result<int> opset_of(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);
  Status check_version(const onnx::NodeProto& node, const std::string& op, int opset) const;
  void collect_unsupported(const NodeList& nodes, int depth,
                           std::map<std::string, std::vector<std::string>>& found) const;
  Status check_operators() const;
  Status add_initializers(const onnx::GraphProto& graph, Scope& scope);
  Status add_inputs(Scope& scope);
  Status check_given_names(const Scope& scope) const;
  Error open_inputs_error() const;
  Result<Shape> input_shape(const std::string& name, const onnx::TypeProto::Tensor& type);
  Result<std::optional<lower::Tensor>> fixed_contents(const std::string& name, ir::DType dtype,
                                                      const onnx::TypeProto::Tensor& type) const;
  Result<ValueId> add_tensor_input(const std::string& name, const onnx::TypeProto::Tensor& type);
  Result<Item> add_input(const std::string& name, const onnx::TypeProto& type, std::set<std::string>& names);
  Status add_output(ValueId id, const std::string& name);
  Status add_outputs(const Scope& scope);
  Status add_nodes(const NodeList& nodes, Scope& scope, int depth);
  Status add_node(const onnx::NodeProto& proto, Scope& scope, int depth);
  Error explain_overrides(Error error) const;
  Status finish_node(Node node);

  // narrow_floats.cc
  const NarrowType* narrow_target(const Node& node) const;  // type of the result; null: it has a dtype
  bool converts_narrow_float(const Node& node) const;
  Status convert_narrow_float(const Node& node);
  Result<ValueId> decoded(const Node& node, ValueId id);
  Result<ValueId> encoded(const Node& node, ValueId x, const NarrowType& type);
  // Adds a node that stands for a part of the given one.
  Result<ValueId> add_part(const Node& node, const std::string& op, std::vector<ValueId> inputs,
                           std::map<std::string, Attribute> attributes = {});

  // import.cc
  Status expand_node(const ExpandEntry& entry, const Node& node, const onnx::NodeProto& proto, Scope& scope);
  Status inline_function(const onnx::FunctionProto& function, const onnx::NodeProto& proto, Scope& scope,
                         int depth);
  Status collect_functions();
  const onnx::FunctionProto* find_function(const onnx::NodeProto& proto) const;
  Result<std::map<std::string, Attribute>> default_attributes(const onnx::FunctionProto& function,
                                                              const onnx::NodeProto& call);
  Status count(size_t parts);
  Result<std::map<std::string, Attribute>> read_attributes(const onnx::NodeProto& proto, const Scope& scope);
  Result<Attribute> read_attribute(const onnx::NodeProto& node, const onnx::AttributeProto& proto);
  // Returns nothing for an unknown name.
  Result<std::optional<Item>> find_item(const std::string& name, const Scope& scope);
  Result<Item> input_item(const onnx::NodeProto& node, const std::string& name, const Scope& scope);
  Result<ValueId> input_value(const onnx::NodeProto& node, const std::string& name, const Scope& scope);
  Status define(const std::string& name, Item item, Scope& scope) const;
  ValueId add_value(const std::string& name);
  const lower::Tensor* constant_of(ValueId id) const { return graph_.constant(id); }
  const Value& value(ValueId id) const { return graph_.values[id]; }

  // control_flow.cc
  Status inline_if(const onnx::NodeProto& proto, Scope& scope, int depth);
  Status inline_loop(const onnx::NodeProto& proto, Scope& scope, int depth);
  struct LoopState;
  Status require(const onnx::NodeProto& proto, ValueId condition, LoopState& loop);
  Status inline_iteration(const onnx::NodeProto& proto, const onnx::GraphProto& body, int64_t turn,
                          const Scope& scope, int depth, LoopState& loop);
  Status define_outputs(const onnx::NodeProto& proto, const LoopState& loop, Scope& scope);
  Status inline_scan(const onnx::NodeProto& proto, Scope& scope, int depth);
  Status inline_sequence_map(const onnx::NodeProto& proto, Scope& scope, int depth);
  // Returns the body's outputs; `inputs` are in the order of the body's own inputs.
  Result<std::vector<Item>> inline_body(const onnx::NodeProto& proto, const onnx::GraphProto& body,
                                        std::span<const Item> inputs, const Scope& scope, int depth);
  Result<Item> choose(const onnx::NodeProto& proto, ValueId condition, const Item& yes, const Item& no,
                      const std::string& what);
  Result<ValueId> stack(const onnx::NodeProto& proto, std::span<const ValueId> slices, int64_t axis);
  Result<ValueId> join(const std::string& name, std::vector<ValueId> parts, int64_t axis);
  Result<ValueId> slice_at(const onnx::NodeProto& proto, ValueId tensor, int64_t axis, int64_t place);
  Result<ValueId> add_one(const std::string& name, const std::string& op, std::vector<ValueId> inputs,
                          std::map<std::string, Attribute> attributes = {});
  // `why`: why it cannot be a region, for the error.
  Status check_unrolled(const onnx::NodeProto& proto, int64_t times, const onnx::GraphProto& body,
                        const std::string& why = {}) const;

  // region_import.cc
  using Captured = std::vector<std::pair<ValueId, ValueId>>;  // a value outside of the body, and inside
  struct Frame {
    Graph graph;
    Bounds bounds;
    NarrowValues narrow;
    Captured captured;
  };
  struct ImportedBody {
    Graph graph;
    Captured captured;
  };
  // A Scan of one batch element.
  struct ScanForm {
    int64_t turns = 0;
    std::vector<ValueId> states, tensors;
    std::vector<int64_t> tensor_axes, result_axes;
    std::vector<bool> slices_backwards, results_backwards;
  };
  void enter_body();
  ImportedBody leave_body();
  Result<ValueId> captured_value(ValueId id, size_t level);
  Result<Item> captured_item(Item item, size_t level);
  Result<std::vector<ValueId>> region_body(const onnx::NodeProto& proto, const onnx::GraphProto& body,
                                           std::span<const Item> arguments, const Scope& scope, int depth);
  Status add_region(const onnx::NodeProto& proto, Node node, size_t outputs, Scope& scope);
  ValueId body_input(const Value& like);
  void add_captured(const Captured& captured, Graph& body, Node& node) const;
  Status region_if(const onnx::NodeProto& proto, const onnx::GraphProto* const (&branches)[2],
                   ValueId condition, Scope& scope, int depth);
  Status region_loop(const onnx::NodeProto& proto, const onnx::GraphProto& body_proto,
                     std::span<const Item> inputs, Scope& scope, int depth);
  Result<ValueId> with_axis_moved(const onnx::NodeProto& proto, ValueId tensor, int64_t from, int64_t to);
  Status region_scan(const onnx::NodeProto& proto, const onnx::GraphProto& body_proto, const ScanForm& form,
                     Scope& scope, int depth);

  // data_dependent.cc
  Status add_data_dependent(Node node);
  Status bounded_non_max_suppression(const Node& node);

  // sequences.cc
  static Structural structural_operator(const std::string& op);
  Result<std::vector<Item>> items_of(const onnx::NodeProto& proto, const Scope& scope);
  Result<std::vector<ValueId>> elements_of(const onnx::NodeProto& proto, const Item& item) const;
  Status sequence_operator(const onnx::NodeProto& proto, Scope& scope, int depth);
  Status optional_operator(const onnx::NodeProto& proto, Scope& scope, int depth);
  Status split_to_sequence(const onnx::NodeProto& proto, const std::vector<Item>& inputs, Scope& scope);
  Result<int64_t> known_integer(const onnx::NodeProto& proto, const Item& item,
                                const std::string& what) const;

  const onnx::ModelProto& model_;
  const ImportOptions& options_;
  std::string place_;
  TensorSource source_;
  FoldLimits limits_;
  std::map<std::string, int64_t> known_dims_;  // named dimensions that an option has resolved
  std::vector<OpenInput> open_;                // inputs without a shape, which one error reports together
  std::vector<ShapeOverride> overrides_;       // overrides of inputs' fixed dimensions
  size_t expanded_ = 0;  // number of parts seen; those of inlined functions count at each call
  std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*> functions_;  // by domain and name
  Graph graph_;  // under import: the model's, or that of a body
  Bounds bounds_;
  NarrowValues narrow_;
  Captured captured_;          // by the body
  std::vector<Frame> frames_;  // of the graphs around the body, from the model's on
};

}  // namespace tensorsmith::graph
