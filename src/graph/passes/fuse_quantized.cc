#include <cmath>
#include <limits>
#include <string_view>

#include "graph/passes/passes.h"

namespace tensorsmith::graph {

namespace {

using ir::DType;
using lower::Tensor;

bool is_byte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }

class Fusion {
 public:
  explicit Fusion(Graph& graph)
      : graph_(graph), producers_(find_producers(graph)), uses_(count_uses(graph)) {}

  void run() {
    for (Node& node : graph_.nodes)
      if (node.op == "QuantizeLinear") fuse(node);
    for (Node& node : graph_.nodes) {
      const bool integer = node.op == "ConvInteger" || node.op == "MatMulInteger";
      if (integer || node.op == "QLinearConv" || node.op == "QLinearMatMul")
        make_scalar(node, integer ? 3 : 5);
    }
  }

 private:
  const Tensor* constant(ValueId id) const { return graph_.constant(id); }
  const Node* producer(ValueId id) const {
    const NodeId n = id == kNoValue ? NodeId() : producers_[id];
    return n.valid() ? &graph_.nodes[n] : nullptr;
  }
  // Returns the node that computes the value, if this reader is the only one.
  const Node* only_for(ValueId id) const { return uses_[id] == 1 ? producer(id) : nullptr; }

  // A tensor of bytes with its quantization: the inputs of a QuantizeLinear or DequantizeLinear
  // node.
  struct Quantized {
    ValueId data = kNoValue, scale = kNoValue, zero = kNoValue;
    DType dtype = DType::kU8;
  };

  // Scales: one for all, or one per channel of `axis` if that is not negative.
  std::optional<Quantized> parameters(const Node& node, ValueId data, DType dtype, int64_t axis) const {
    Quantized q{data, node.inputs[1], node.input(2), dtype};
    const Tensor* scale = constant(q.scale);
    if (!is_byte(dtype) || scale == nullptr || scale->dtype != DType::kF32) return std::nullopt;
    if (q.zero != kNoValue && constant(q.zero) == nullptr) return std::nullopt;
    // The fused operators do not support blocks, elements of 4 bits, and results or intermediate
    // values of another dtype.
    for (const char* name : {"block_size", "bits", "precision", "output_dtype"}) {
      const bool names_dtype = std::string_view(name) == "output_dtype" && node.op == "QuantizeLinear";
      if (node.integer(name, 0) != 0 && !names_dtype) return std::nullopt;
    }
    if (scale->num_elements() == 1) return q;
    int64_t own = node.integer("axis", 1);
    if (own < 0) own += std::ssize(graph_.values[data].shape);
    return own == axis && scale->shape.size() == 1 ? std::optional(q) : std::nullopt;
  }

  std::optional<Quantized> dequantized(ValueId id, int64_t axis) const {
    const Node* node = producer(id);
    if (node == nullptr || node->op != "DequantizeLinear") return std::nullopt;
    return parameters(*node, node->inputs[0], graph_.values[node->inputs[0]].dtype, axis);
  }

  ValueId add(std::string name, Tensor tensor) {
    uses_.push_back(0);
    producers_.emplace_back();
    return add_constant(graph_, std::move(name), std::move(tensor));
  }
  // Zero points of the weights that are all equal (mostly 0) become a scalar, for which the sums
  // need no tensor.
  void make_scalar(Node& node, size_t input) {
    const Tensor* zeros = constant(node.input(input));
    if (zeros == nullptr || zeros->num_elements() < 2) return;
    for (int64_t i = 1; i < zeros->num_elements(); ++i)
      if (zeros->at(i).i != zeros->at(0).i) return;
    Tensor one = Tensor::zeros(zeros->dtype, {});
    one.set(0, zeros->at(0));
    node.inputs[input] = add("zero_point", std::move(one));
  }
  ValueId zero_of(const Quantized& q) {
    if (q.zero != kNoValue) return q.zero;
    return add("zero_point", Tensor::zeros(q.dtype, constant(q.scale)->shape));
  }

  // Returns the bias in units of the products' scale, as i32; kNoValue if it is not known or does
  // not fit.
  ValueId integer_bias(ValueId id, const Quantized& x, const Quantized& w, int64_t channels) {
    const Tensor* bias = constant(id);
    const Tensor* scale = nullptr;
    if (const Node* node = producer(id); node != nullptr && node->op == "DequantizeLinear") {
      bias = constant(node->inputs[0]);
      scale = constant(node->inputs[1]);
      const Tensor* zero = constant(node->input(2));
      if (bias == nullptr || scale == nullptr) return kNoValue;
      if (node->input(2) != kNoValue) {
        if (zero == nullptr) return kNoValue;
        for (int64_t i = 0; i < zero->num_elements(); ++i)
          if (zero->at(i).i != 0) return kNoValue;
      }
    }
    if (bias == nullptr || bias->num_elements() != channels) return kNoValue;
    const auto at = [](const Tensor& t, int64_t i) {
      const ir::Scalar value = t.at(t.num_elements() == 1 ? 0 : i);
      return ir::is_float(value.dtype) ? value.f : value.i;
    };
    Tensor result = Tensor::zeros(DType::kI32, {channels});
    for (int64_t c = 0; c < channels; ++c) {
      const double value = at(*bias, c) * (scale == nullptr ? 1 : at(*scale, c));
      const double units = std::nearbyint(value / (at(*constant(x.scale), 0) * at(*constant(w.scale), c)));
      // Far enough from the limit that the sum with the products fits, too.
      if (!(std::abs(units) < std::numeric_limits<int32_t>::max() / 2)) return kNoValue;
      result.set(c, ir::scalar_int(DType::kI32, static_cast<int64_t>(units)));
    }
    return add("bias", std::move(result));
  }

  // Skips a Relu, which has no effect if the output cannot be below its zero point.
  const Node* skip_relu(const Node* node, const Quantized& y) const {
    if (node == nullptr || node->op != "Relu") return node;
    const Tensor* zero = constant(y.zero);
    const int64_t lowest = y.dtype == DType::kI8 ? -128 : 0;
    const int64_t value = zero == nullptr ? 0 : zero->at(0).i;
    return value == lowest ? only_for(node->inputs[0]) : nullptr;
  }

  // Returns whether the node is A B + C, where B may be transposed and C has one value per column.
  bool is_plain_gemm(const Node& node) const {
    if (node.op != "Gemm" || node.integer("transA", 0) != 0) return false;
    for (const char* name : {"alpha", "beta"}) {
      const auto* factor = node.find<double>(name);
      if (factor != nullptr && *factor != 1) return false;
    }
    if (node.input(2) == kNoValue) return true;
    const auto& added = graph_.values[node.inputs[2]].shape;
    return added.size() == 1 || (added.size() == 2 && added[0] == 1);
  }

  static Tensor transpose(const Tensor& t) {
    const int64_t rows = t.shape[0], columns = t.shape[1];
    Tensor result = Tensor::zeros(t.dtype, {columns, rows});
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) result.set(j * rows + i, t.at(i * columns + j));
    return result;
  }

  void fuse(Node& quantize) {
    const DType out = graph_.values[quantize.outputs[0]].dtype;
    const auto y = parameters(quantize, quantize.outputs[0], out, -1);
    if (!y) return;
    const Node* op = skip_relu(only_for(quantize.inputs[0]), *y);
    if (op == nullptr || (op->op != "Conv" && op->op != "MatMul" && !is_plain_gemm(*op))) return;
    const bool conv = op->op == "Conv";
    const bool transposed = op->op == "Gemm" && op->integer("transB", 0) != 0;
    const auto& shape = graph_.values[op->inputs[1]].shape;
    const auto rank = std::ssize(shape);
    const int64_t axis = conv || transposed ? 0 : rank - 1;  // axis of the output's channels or columns
    const auto x = dequantized(op->inputs[0], -1);
    auto w = dequantized(op->inputs[1], axis);
    // One scale per column is supported only for matrices: for a batch, it would have another
    // shape.
    if (!x || !w || (!conv && constant(w->scale)->num_elements() > 1 && rank != 2)) return;
    if (!conv && (rank < 2 || graph_.values[op->inputs[0]].shape.size() < 2)) return;
    if (transposed && constant(w->data) == nullptr) return;
    ValueId bias = kNoValue;
    if (op->input(2) != kNoValue) {
      const int64_t channels = shape[axis];
      bias = integer_bias(op->inputs[2], *x, *w, channels);
      if (bias == kNoValue) return;
    }
    if (transposed) w->data = add("weights", transpose(*constant(w->data)));
    Node fused{op->name, conv ? "QLinearConv" : "QLinearMatMul", op->opset, {}, {}, quantize.outputs};
    if (conv) fused.attributes = op->attributes;
    fused.inputs = {x->data, x->scale, zero_of(*x), w->data, w->scale, zero_of(*w), y->scale, zero_of(*y)};
    if (bias != kNoValue) fused.inputs.push_back(bias);
    quantize = std::move(fused);
  }

  Graph& graph_;
  IdVector<ValueId, NodeId> producers_;
  IdVector<ValueId, int> uses_;
};

}  // namespace

void fuse_quantized(Graph& graph) { Fusion(graph).run(); }

}  // namespace tensorsmith::graph
