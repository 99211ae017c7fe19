// The graph IR: a network with static shapes, as imported from ONNX and rewritten by the graph passes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "graph/onnx/declared.h"
#include "ir/workload.h"
#include "lower/interpreter.h"

template <class List>
struct std::hash<tensorsmith::Id<List>> {
  size_t operator()(tensorsmith::Id<List> id) const { return id.place(); }
};

namespace tensorsmith::graph {

using ValueId = Id<struct Value>;
using NodeId = Id<struct Node>;
inline constexpr ValueId kNoValue;  // an omitted optional input

struct Value {
  std::string name;
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;
  std::shared_ptr<const lower::Tensor> constant;  // contents, if known

  int64_t bytes() const {
    int64_t elements = 1;
    for (const int64_t extent : shape) elements *= extent;
    return ir::bytes_of(dtype, elements);
  }
};

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, lower::Tensor>;

struct Region;

struct Node {
  std::string name;  // ONNX node name, or a generated one: "Conv_12"
  std::string op;    // ONNX operator: "Conv"; domain prefix when not ai.onnx
  int opset = 0;     // opset version the node was written for
  std::map<std::string, Attribute> attributes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::shared_ptr<const Region> region = nullptr;  // of the operators kLoopOperator and kBranchOperator

  // Returns an input, or kNoValue if it is omitted.
  ValueId input(size_t i) const { return i < inputs.size() ? inputs[i] : kNoValue; }
  // Returns the attribute, or null if it is absent or has another type.
  template <class T>
  const T* find(const std::string& attribute) const {
    const auto found = attributes.find(attribute);
    return found == attributes.end() ? nullptr : std::get_if<T>(&found->second);
  }
  // Returns the integer attribute, or `otherwise` if find() does not find it.
  int64_t integer(const std::string& attribute, int64_t otherwise) const {
    const auto* value = find<int64_t>(attribute);
    return value == nullptr ? otherwise : *value;
  }
};

struct Graph {
  std::string name;
  IdVector<ValueId, Value> values;
  IdVector<NodeId, Node> nodes;  // topological order
  std::vector<ValueId> inputs;   // run-time inputs (initializers excluded)
  std::vector<ValueId> outputs;
  std::vector<std::string> notes;  // notes to the user who requested the import, a sentence each

  // Returns the contents of a value; null if they are not known or the id is kNoValue.
  const lower::Tensor* constant(ValueId id) const {
    return id == kNoValue ? nullptr : values[id].constant.get();
  }
};

// A node that runs its body repeatedly, and a node that runs one of two bodies.
inline constexpr const char* kLoopOperator = "tensorsmith.Loop";
inline constexpr const char* kBranchOperator = "tensorsmith.Branch";

// The bodies of a node, each a graph of its own: a value of the network that a body reads is an input of the body and
// of the node. Bodies have their own constants, and their outputs are different values.
//
// A loop has one body, whose inputs are: states, slices, other values. Its outputs are: the condition for the next turn if there is
// one, the next states, results. The node's inputs are: the number of turns (one i64) if it is known only at run time, the
// first turn's condition (one bool) if there is one, the first states, the tensors that are read slice by slice along
// dimension 0, other values. Its outputs are: the last states, and tensors of the results, along dimension 0.
//
// A branch has two bodies, the first for a condition that holds. Their inputs are all values that one of them reads, and
// their outputs those of the node. The node's inputs are the condition (one bool) and these values.
struct Region {
  std::vector<Graph> bodies;
  // By body of a branch: why it cannot be compiled for these shapes. Then the body computes nothing, and a run that takes
  // it fails. Empty for other bodies.
  std::array<std::string, 2> refused;
  // Loops only:
  int64_t turns = 0;  // most turns; 0: no limit is known, and there are no slices and results
  bool counted = false, conditional = false;
  size_t states = 0;
  std::vector<bool> slices_backwards, results_backwards;  // by slice and result: the last one comes first

  // Number of the node's inputs before those of the body.
  size_t leading_inputs() const { return static_cast<size_t>(counted) + static_cast<size_t>(conditional); }
};

// An input whose shape is given neither by the model nor by the options of the import.
struct OpenInput {
  std::string name;
  // Known lengths, from either source, and -1; none: the model does not say how many dimensions
  // there are. For a sequence, it is the shape of its tensors, which are named NAME[0], NAME[1],
  // ...
  std::optional<std::vector<DeclaredDimension>> shape;
  bool is_sequence = false;
};

struct ImportOptions {
  // NAME -> shape that replaces the one declared in the file: for symbolic dimensions, and to
  // change fixed ones (which adds a note to the graph). The number of dimensions must be the
  // file's.
  std::map<std::string, std::vector<int64_t>> shapes;
  // NAME -> length of the symbolic dimension of this name, in all inputs that have it.
  std::map<std::string, int64_t> dims;
  // NAME -> contents. These inputs become constants and are no longer run-time inputs of the graph.
  std::map<std::string, lower::Tensor> constant_inputs;
  // NAME -> contents as text, for inputs that become constants, too: numbers, or true and false, separated by
  // commas. One number fills an input whose shape is known.
  std::map<std::string, std::string> constant_texts;
  // Optional inputs that are not given, and sequences that are empty.
  std::set<std::string> absent;
  // Results whose number of rows depends on the data (NonMaxSuppression, NonZero, Compress, Unique,
  // values collected by a Loop with a condition) get their largest shape: data first, then padding.
  // For a padded output Y, the output Y.count has its number of rows. If false, such a node is an
  // error.
  bool bounded = false;
  // Most memory for all constants that are made during the import (initializers, folded nodes).
  int64_t max_constant_bytes = int64_t{8} << 30;
  // Appends advice to the error about open inputs: how the caller's user can give their shapes.
  // None: nothing is appended.
  std::function<std::string(std::span<const OpenInput>)> shape_advice;
};
// Reads an ONNX model (opset 7 to 28; older ones as far as their operators mean the same; operators of
// newer opsets are read as those of opset 28, with a note), resolves all shapes and folds small constant
// expressions (shape arithmetic). External tensor data is read from files beside the model. Model-local
// functions and the bodies of If, Loop and Scan are inlined; the tensors of a sequence are inputs and
// outputs named NAME[0], NAME[1], ...
//
// Errors:
//  - kNotFound, kIo, kCorrupt: unreadable or corrupt file;
//  - kUnsupported: unsupported operators (all of them in one line, each with its node) and dtypes;
//  - kInvalidArgument: an input, output or attribute that this version of the operator does not have; open
//    inputs (all of them in one line, with ImportOptions::shape_advice); a shape or length for a name that
//    the model does not have (with the nearest name); given shapes that contradict each other or that a node
//    was not exported for;
//  - kResourceExhausted: too much constant data.
Result<Graph> import_onnx(const std::string& path, const ImportOptions& options);
// As above, from memory; external data is an error.
Result<Graph> import_onnx_bytes(std::string_view bytes, const ImportOptions& options,
                                const std::string& display_name);

// Reads a TensorProto file (ONNX test data).
Result<lower::Tensor> read_tensor_proto(const std::string& path);
// A value of ONNX's test data: a tensor (TensorProto), or the tensors of a sequence or an optional
// (SequenceProto, OptionalProto), which may have none.
struct TestValue {
  std::string name;  // may be empty
  bool is_list = false;
  std::vector<lower::Tensor> tensors;
};
Result<TestValue> read_test_value(const std::string& path);
Status write_tensor_proto(const std::string& path, const std::string& name, const lower::Tensor& tensor);

struct OptimizeOptions {
  // A node is folded if its evaluation takes at most this many element operations (about 1e8 per
  // second) ...
  double max_fold_cost = 1 << 26;
  // ... and all folded results together take at most this much memory.
  int64_t max_constant_bytes = int64_t{4} << 30;
  // Products of f32 round their factors to TF32, which tensor cores can multiply: 10 bits of
  // fraction instead of 23.
  bool tf32 = false;
};
// Runs the graph passes, in this order: fusion of quantized operators, constant folding,
// elimination of identities and of dead nodes, folding of batch normalization and of channel scales
// into weights, splitting of transposed convolutions, folding of pads, merging of data movement,
// and rounding of products if requested, which is the only pass that changes the graph's meaning.
// Values are renumbered.
Status optimize(Graph& graph, const OptimizeOptions& options = {});

}  // namespace tensorsmith::graph
