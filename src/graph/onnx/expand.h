// Operators that are imported as several nodes, so that fusion can handle the products and
// softmaxes in them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/op_context.h"

namespace tensorsmith::graph {

// The graph under import, which nodes are added to.
class NodeSink {
 public:
  virtual ~NodeSink() = default;
  virtual const Graph& graph() const = 0;
  // Infers (and folds, if possible) the node with the given number of new outputs; node.outputs
  // must be empty.
  virtual Result<std::vector<ValueId>> add(Node node, size_t outputs) = 0;
  virtual ValueId constant(lower::Tensor tensor) = 0;
};

// Expands one operator into several nodes.
class Expansion {
 public:
  Expansion(NodeSink& sink, const Node& node, OpContext& context) : ctx(context), sink_(sink), node_(node) {}

  OpContext& ctx;  // attributes and input shapes of the node; nothing is emitted into it

  const Node& node() const { return node_; }
  // Returns the input, or kNoValue if it is omitted.
  ValueId in(size_t i) const { return node_.input(i); }
  const Value& value(ValueId id) const { return sink_.graph().values[id]; }
  const Shape& shape(ValueId id) const { return value(id).shape; }
  ir::DType dtype(ValueId id) const { return value(id).dtype; }
  const lower::Tensor* known(ValueId id) const { return sink_.graph().constant(id); }

  // Adds a node of opset 18, in which the axes of reductions, Squeeze and Split are inputs. An operator that is
  // itself expanded is added as its nodes.
  Result<ValueId> op(const std::string& op, std::vector<ValueId> inputs,
                     std::map<std::string, Attribute> attributes = {});
  Result<std::vector<ValueId>> ops(const std::string& op, std::vector<ValueId> inputs, size_t outputs,
                                   std::map<std::string, Attribute> attributes = {});
  ValueId constant(lower::Tensor tensor) { return sink_.constant(std::move(tensor)); }
  ValueId ints(const std::vector<int64_t>& values);
  ValueId scalar(ir::DType dtype, double value);

  // Adds a loop (graph.h, Region) with all of its outputs.
  Result<std::vector<ValueId>> loop(std::shared_ptr<const Region> region, std::vector<ValueId> inputs);

  Result<ValueId> reshape(ValueId id, const Shape& shape);
  Result<ValueId> transpose(ValueId id, std::vector<int64_t> permutation);
  Result<ValueId> slice(ValueId id, int64_t axis, int64_t begin, int64_t end);
  Result<ValueId> cast(ValueId id, ir::DType dtype);

 private:
  Result<std::vector<ValueId>> expand(const struct ExpandEntry& entry, Node node, size_t outputs);

  NodeSink& sink_;
  const Node& node_;
  int made_ = 0;
};

// Returns the type of intermediate values: f16 and bf16 are only used for storage.
inline ir::DType wide(ir::DType dtype) { return dtype == ir::DType::kF64 ? dtype : ir::DType::kF32; }

// Returns the values of the node's outputs.
using Expander = Result<std::vector<ValueId>> (*)(Expansion&);
struct ExpandEntry {
  std::string_view op;
  std::string_view signature;  // as in ops/registry.h
  Expander expand;
  // Names of its attributes, separated by spaces, if ONNX does not define the operator.
  std::string_view attributes = {};
  int oldest_opset = 1;  // as in ops/registry.h
};
// Returns null if there is none.
const ExpandEntry* find_expanded_operator(std::string_view op);

// One list per family of operators.
std::span<const ExpandEntry> attention_expansions();
std::span<const ExpandEntry> contributed_attention_expansions();
std::span<const ExpandEntry> contributed_expansions();
std::span<const ExpandEntry> einsum_expansions();
std::span<const ExpandEntry> quantized_expansions();
std::span<const ExpandEntry> recurrent_expansions();
std::span<const ExpandEntry> signal_expansions();
std::span<const ExpandEntry> state_expansions();
std::span<const ExpandEntry> text_expansions();

}  // namespace tensorsmith::graph
