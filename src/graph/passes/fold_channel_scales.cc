#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "graph/ops/op_context.h"
#include "graph/passes/passes.h"

namespace tensorsmith::graph {

namespace {

// The operation y[n, c, ...] = x[n, c, ...] * factor[c] + shift[c].
struct ChannelAffine {
  ValueId x = kNoValue;
  std::vector<double> factor;
  std::vector<double> shift;
};

const lower::Tensor* constant_at(const Graph& graph, const Node& node, size_t input) {
  return graph.constant(node.input(input));
}

double float_attribute(const Node& node, const std::string& name, double otherwise) {
  const auto* value = node.find<double>(name);
  return value == nullptr ? otherwise : *value;
}

std::vector<double> numbers(const lower::Tensor& tensor) {
  std::vector<double> result;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) result.push_back(tensor.at(i).f);
  return result;
}

std::optional<ChannelAffine> of_batch_norm(const Graph& graph, const Node& node, int64_t channels) {
  std::vector<double> p[4];
  for (size_t i = 0; i < 4; ++i) {
    const lower::Tensor* tensor = constant_at(graph, node, i + 1);
    if (tensor == nullptr) return std::nullopt;
    p[i] = numbers(*tensor);
    if (std::ssize(p[i]) != channels) return std::nullopt;
  }
  const double epsilon = float_attribute(node, "epsilon", double{1e-5F});
  ChannelAffine affine;
  affine.x = node.inputs[0];
  for (int64_t c = 0; c < channels; ++c) {
    const double factor = p[0][c] / std::sqrt(p[3][c] + epsilon);
    affine.factor.push_back(factor);
    affine.shift.push_back(p[1][c] - p[2][c] * factor);
  }
  return affine;
}

// Returns a constant operand that depends only on the channel (dimension 1 of rank dimensions), as
// one number per channel.
std::optional<std::vector<double>> per_channel(const lower::Tensor& tensor, size_t rank, int64_t channels) {
  if (tensor.num_elements() == 1 && tensor.shape.size() <= rank) {
    return std::vector<double>(channels, tensor.at(0).f);
  }
  const size_t missing = rank - std::min(rank, tensor.shape.size());
  if (tensor.shape.size() > rank || tensor.num_elements() != channels || missing > 1 ||
      tensor.shape[1 - missing] != channels) {
    return std::nullopt;
  }
  return numbers(tensor);
}

std::optional<ChannelAffine> channel_affine(const Graph& graph, const Node& node) {
  const bool arithmetic = node.op == "Mul" || node.op == "Add" || node.op == "Sub" || node.op == "Div";
  if ((!arithmetic && node.op != "BatchNormalization") || node.outputs.size() != 1) return std::nullopt;
  const Value& out = graph.values[node.outputs[0]];
  if (out.dtype != ir::DType::kF32 || out.shape.size() < 2) return std::nullopt;
  const int64_t channels = out.shape[1];
  // Opset 6 aligns operands differently.
  if (arithmetic && node.attributes.contains("axis")) return std::nullopt;
  if (!arithmetic) return of_batch_norm(graph, node, channels);

  size_t data = 0;
  if (constant_at(graph, node, 1) == nullptr) data = 1;
  const lower::Tensor* operand = constant_at(graph, node, 1 - data);
  const ValueId x = node.input(data);
  if (operand == nullptr || x == kNoValue || graph.constant(x) != nullptr ||
      graph.values[x].shape != out.shape)
    return std::nullopt;
  if (data == 1 && node.op == "Div") return std::nullopt;
  const auto c = per_channel(*operand, out.shape.size(), channels);
  if (!c) return std::nullopt;
  ChannelAffine affine;
  affine.x = x;
  affine.factor.assign(channels, 1.0);
  affine.shift.assign(channels, 0.0);
  for (int64_t k = 0; k < channels; ++k) {
    if (node.op == "Mul") affine.factor[k] = (*c)[k];
    if (node.op == "Div") affine.factor[k] = 1.0 / (*c)[k];
    if (node.op == "Add") affine.shift[k] = (*c)[k];
    if (node.op == "Sub") {
      affine.factor[k] = data == 0 ? 1.0 : -1.0;
      affine.shift[k] = data == 0 ? -(*c)[k] : (*c)[k];
    }
  }
  return affine;
}

// The channel of each weight, as (index / stride) % extent [+ the group's first channel].
struct WeightChannels {
  int64_t stride = 1;
  int64_t extent = 1;
  int64_t group_stride = 0;  // elements of one group; 0 = no groups
};

std::optional<WeightChannels> weight_channels(const Node& node, const Shape& w) {
  if (node.op == "Conv") return WeightChannels{product(std::span(w).subspan(1)), w[0], 0};
  if (node.op == "ConvTranspose") {
    const int64_t groups = node.integer("group", 1);
    const int64_t kernel = product(std::span(w).subspan(2));
    return WeightChannels{kernel, w[1], groups == 1 ? 0 : product(w) / groups};
  }
  if (node.op == "Gemm") {
    const bool transposed = node.integer("transB", 0) != 0;
    return transposed ? WeightChannels{w[1], w[0], 0} : WeightChannels{1, w[1], 0};
  }
  return std::nullopt;
}

// Moves the scale into the node that computes affine.x. Returns false if that is not possible.
bool fold_into(Graph& graph, Node& producer, const ChannelAffine& affine, const std::string& name) {
  const lower::Tensor* weights = constant_at(graph, producer, 1);
  if (weights == nullptr || weights->dtype != ir::DType::kF32) return false;
  const auto layout = weight_channels(producer, weights->shape);
  if (!layout) return false;
  const size_t channels = affine.factor.size();
  std::vector<double> bias(channels, 0.0);
  if (producer.input(2) != kNoValue) {
    const lower::Tensor* constant = constant_at(graph, producer, 2);
    if (constant == nullptr) return false;
    const std::vector<double> given = numbers(*constant);
    const bool row = constant->shape.size() <= 1 || constant->shape[0] == 1;
    if (!row || (given.size() != channels && given.size() != 1)) return false;
    const double beta = producer.op == "Gemm" ? float_attribute(producer, "beta", 1.0) : 1.0;
    for (size_t c = 0; c < channels; ++c) bias[c] = beta * given[given.size() == 1 ? 0 : c];
  }
  const bool scales =
      std::any_of(affine.factor.begin(), affine.factor.end(), [](double f) { return f != 1.0; });
  if (scales) {
    lower::Tensor scaled = *weights;
    for (int64_t i = 0; i < scaled.num_elements(); ++i) {
      int64_t c = i / layout->stride % layout->extent;
      if (layout->group_stride > 0) c += i / layout->group_stride * layout->extent;
      const double weight = scaled.at(i).f * affine.factor[c];
      // An infinite weight would turn zeros of the data into NaN, where the scaled sum gives zero.
      if (!(std::abs(weight) <= std::numeric_limits<float>::max())) return false;
      scaled.set(i, ir::scalar_float(ir::DType::kF32, weight));
    }
    producer.inputs[1] = add_constant(graph, name + "_weight", std::move(scaled));
  }
  for (size_t c = 0; c < channels; ++c) bias[c] = bias[c] * affine.factor[c] + affine.shift[c];
  producer.inputs.resize(3, kNoValue);
  producer.inputs[2] = add_constant(graph, name + "_bias", vector_of(ir::DType::kF32, bias));
  if (producer.op == "Gemm") producer.attributes.insert_or_assign("beta", 1.0);
  return true;
}

// Makes Mul and Add with constants of shape (C, 1, ..., 1).
std::vector<Node> as_mul_add(Graph& graph, const Node& node, const ChannelAffine& affine) {
  const Value out = graph.values[node.outputs[0]];
  const auto add_operand = [&](const std::string& name, const std::vector<double>& values) {
    lower::Tensor tensor = vector_of(ir::DType::kF32, values);
    tensor.shape.resize(out.shape.size() - 1, 1);
    return add_constant(graph, name, std::move(tensor));
  };
  Value product_value = out;
  product_value.name = out.name + "_scaled";
  const ValueId scaled = graph.values.push_back(std::move(product_value));
  Node mul{node.name + "_scale", "Mul", node.opset, {}, {}, {scaled}};
  mul.inputs = {affine.x, add_operand(node.name + "_scale", affine.factor)};
  Node add{node.name + "_shift", "Add", node.opset, {}, {}, node.outputs};
  add.inputs = {scaled, add_operand(node.name + "_shift", affine.shift)};
  return {std::move(mul), std::move(add)};
}

}  // namespace

void fold_channel_scales(Graph& graph) {
  IdVector<ValueId, int> uses = count_uses(graph);
  IdVector<NodeId, Node> kept;
  IdVector<ValueId, NodeId> producer;
  const auto keep = [&](Node node) {
    producer.resize(graph.values.size());
    for (ValueId id : node.outputs) {
      if (id != kNoValue) producer[id] = kept.next();
    }
    kept.push_back(std::move(node));
  };
  for (Node& node : graph.nodes) {
    const auto affine = channel_affine(graph, node);
    if (!affine) {
      keep(std::move(node));
      continue;
    }
    producer.resize(graph.values.size());
    const ValueId x = affine->x;
    if (producer[x].valid() && uses[x] == 1) {
      Node& before = kept[producer[x]];
      if (before.outputs.size() == 1 && fold_into(graph, before, *affine, node.name)) {
        // The producer now computes the node's output.
        before.outputs = node.outputs;
        producer.resize(graph.values.size());
        producer[node.outputs[0]] = producer[x];
        uses.resize(graph.values.size(), 1);
        continue;
      }
    }
    if (node.op != "BatchNormalization") {
      keep(std::move(node));
      continue;
    }
    for (Node& replacement : as_mul_add(graph, node, *affine)) keep(std::move(replacement));
    uses.resize(graph.values.size(), 1);
  }
  graph.nodes = std::move(kept);
}

}  // namespace tensorsmith::graph
