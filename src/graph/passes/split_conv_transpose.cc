#include <algorithm>

#include "graph/ops/move.h"
#include "graph/ops/registry.h"
#include "graph/ops/window.h"
#include "graph/passes/passes.h"

namespace tensorsmith::graph {

namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// One spatial dimension. Output position o = stride * q + phase - pad with 0 <= phase < stride. Tap
// r contributes input element i to it if stride * i + r * dilation = o + pad. Without dilation, r =
// phase + stride * t and i = q - t; with stride 1 there is one phase, r = t and i = q - t *
// dilation.
struct TransposedDimension {
  int64_t stride = 1, dilation = 1;
  int64_t kernel = 1;
  int64_t taps = 1;             // taps of a phase
  int64_t first = 0, last = 0;  // range of q
  int64_t pad_begin = 0, pad_end = 0;
  int64_t pad = 0;
  int64_t crop = 0;  // results before the first one of the output
  int64_t output = 1;

  int64_t count() const { return last - first + 1; }
};

// The convolution counts taps in the opposite direction: u = taps - 1 - t.
TransposedDimension split(const TransposedWindow& window, size_t d, int64_t input, int64_t kernel) {
  TransposedDimension s;
  s.stride = window.strides[d];
  s.dilation = window.dilations[d];
  s.kernel = kernel;
  s.taps = (kernel + s.stride - 1) / s.stride;
  s.output = window.output[d];
  const int64_t pad = s.pad = window.pads_begin[d];
  s.first = floor_div(pad, s.stride);
  s.last = floor_div(s.output - 1 + pad, s.stride);
  s.pad_begin = (s.taps - 1) * s.dilation - s.first;
  s.pad_end = s.last - (input - 1);
  s.crop = pad - s.first * s.stride;
  return s;
}

// Returns the taps of a phase. Unlike TransposedDimension::taps, it does not include the zeros that
// make all phases alike.
int64_t own_taps(const TransposedDimension& s, int64_t phase) {
  return (s.kernel - phase + s.stride - 1) / s.stride;
}

// For each dimension, a residue of the output's position.
using Phase = std::vector<int64_t>;

std::vector<Phase> all_phases(const std::vector<TransposedDimension>& dims) {
  std::vector<Phase> phases = {{}};
  for (const TransposedDimension& s : dims) {
    std::vector<Phase> longer;
    for (const Phase& phase : phases)
      for (int64_t residue = 0; residue < s.stride; ++residue) {
        longer.push_back(phase);
        longer.back().push_back(residue);
      }
    phases = std::move(longer);
  }
  return phases;
}

// Converts weights (C, K / groups, kernel...) to (K * phases, C / groups, taps...), with channels
// (group, filter, phase...) and zeros beyond the kernel.
lower::Tensor split_weights(const lower::Tensor& weights, int64_t groups,
                            const std::vector<TransposedDimension>& dims, const std::vector<Phase>& phases,
                            const Shape& taps) {
  const int64_t channels = weights.shape[0] / groups;  // channels of a group
  const int64_t filters = weights.shape[1];
  const auto num_phases = std::ssize(phases);
  Shape shape = {groups * filters * num_phases, channels};
  shape.insert(shape.end(), taps.begin(), taps.end());
  int64_t num_taps = 1, kernel = 1;
  for (const int64_t t : taps) num_taps *= t;
  for (const TransposedDimension& s : dims) kernel *= s.kernel;
  lower::Tensor result = lower::Tensor::zeros(weights.dtype, shape);
  for (int64_t p = 0; p < num_phases; ++p) {
    for (int64_t u = 0; u < num_taps; ++u) {
      // Finds the kernel's element for this phase and tap.
      int64_t element = 0, place = 1, rest = u;
      bool inside = true;
      for (size_t d = dims.size(); d-- > 0;) {
        const int64_t r = phases[p][d] + dims[d].stride * (taps[d] - 1 - rest % taps[d]);
        rest /= taps[d];
        inside = inside && r < dims[d].kernel;
        element += r * place;
        place *= dims[d].kernel;
      }
      if (!inside) continue;
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t f = 0; f < filters; ++f)
          for (int64_t c = 0; c < channels; ++c)
            result.set((((g * filters + f) * num_phases + p) * channels + c) * num_taps + u,
                       weights.at(((g * channels + c) * filters + f) * kernel + element));
    }
  }
  return result;
}

MoveStep reshape_to(Shape shape) {
  MoveStep step;
  step.to = std::move(shape);
  step.is_reshape = true;
  return step;
}

// Moves (N, K * phases, q...) to (N, K, output...): the phases become the least significant part of
// each position.
std::vector<MoveStep> interleave(int64_t batch, int64_t filters,
                                 const std::vector<TransposedDimension>& dims) {
  Shape apart = {batch, filters}, paired = {batch, filters}, joined = {batch, filters};
  Shape output = {batch, filters};
  for (const TransposedDimension& s : dims) apart.push_back(s.stride);
  for (const TransposedDimension& s : dims) {
    apart.push_back(s.count());
    paired.insert(paired.end(), {s.count(), s.stride});
    joined.push_back(s.count() * s.stride);
    output.push_back(s.output);
  }
  MoveStep pair;  // apart (.., phases.., q..) from paired (.., q, phase, ..)
  pair.to = paired;
  pair.source = {{0, 1, 0}, {1, 1, 0}};
  const auto rank = std::ssize(dims);
  for (int64_t d = 0; d < rank; ++d) pair.source.push_back({3 + 2 * d, 1, 0});
  for (int64_t d = 0; d < rank; ++d) pair.source.push_back({2 + 2 * d, 1, 0});
  MoveStep crop;
  crop.to = output;
  crop.source = {{0, 1, 0}, {1, 1, 0}};
  for (int64_t d = 0; d < rank; ++d) crop.source.push_back({2 + d, 1, dims[d].crop});
  std::vector<MoveStep> steps = {reshape_to(apart), pair, reshape_to(joined)};
  if (output != joined) steps.push_back(crop);
  return steps;
}

// Moves (N, phases * K, q...), where the phase is that of the output's position, beginning at 0, to
// (N, K, output...).
std::vector<MoveStep> interleave_parts(int64_t batch, int64_t filters,
                                       const std::vector<TransposedDimension>& dims) {
  const auto rank = std::ssize(dims);
  Shape apart = {batch}, paired = {batch, filters}, output = {batch, filters};
  for (const TransposedDimension& s : dims) apart.push_back(s.stride);
  apart.push_back(filters);
  for (const TransposedDimension& s : dims) {
    apart.push_back(s.output / s.stride);
    paired.insert(paired.end(), {s.output / s.stride, s.stride});
    output.push_back(s.output);
  }
  MoveStep pair;  // apart (.., phases.., K, q..) from paired (.., K, q, phase, ..)
  pair.to = paired;
  pair.source = {{0, 1, 0}};
  for (int64_t d = 0; d < rank; ++d) pair.source.push_back({3 + 2 * d, 1, 0});
  pair.source.push_back({1, 1, 0});
  for (int64_t d = 0; d < rank; ++d) pair.source.push_back({2 + 2 * d, 1, 0});
  return {reshape_to(apart), pair, reshape_to(output)};
}

// Returns whether separate convolutions for the phases are better. One convolution for all has as
// many taps as the largest phase, and as many results as there are positions from the first that
// any phase begins at to the last.
bool better_apart(const std::vector<TransposedDimension>& dims) {
  constexpr int64_t kMaxPhases = 9;  // kernels
  constexpr double kGain = 1.1;
  int64_t phases = 1;
  double together = 1, apart = 1;
  for (const TransposedDimension& s : dims) {
    if (s.output % s.stride != 0 || s.kernel < s.stride) return false;
    phases *= s.stride;
    together *= s.stride * s.taps * s.count();
    apart *= s.kernel * (s.output / s.stride);
  }
  return phases > 1 && phases <= kMaxPhases && together > kGain * apart;
}

class Splitter {
 public:
  explicit Splitter(Graph& graph) : graph_(graph) {}

  void run() {
    Nodes nodes;
    for (Node& node : graph_.nodes) {
      std::vector<TransposedDimension> dims =
          node.op == "ConvTranspose" ? dimensions(node) : std::vector<TransposedDimension>();
      if (dims.empty()) {
        nodes.push_back(std::move(node));
      } else {
        replace(node, dims, nodes);
      }
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  using Nodes = IdVector<NodeId, Node>;

  const Value& value(ValueId id) const { return graph_.values[id]; }

  // Returns an empty list if the node is not split.
  std::vector<TransposedDimension> dimensions(const Node& node) const {
    if (node.inputs.size() < 2) return {};
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNoValue && graph_.constant(node.inputs[i]) == nullptr) return {};
    const Shape& x = value(node.inputs[0]).shape;
    const Shape& w = value(node.inputs[1]).shape;
    WorkloadBuilder builder;
    OpContext ctx(graph_, node, {}, builder);
    const Shape kernel(w.begin() + 2, w.end());
    const auto window = read_transposed_window(ctx, Shape(x.begin() + 2, x.end()), kernel);
    if (!window.ok()) return {};
    std::vector<TransposedDimension> dims;
    double padded = 1;  // ratio of the kernel's elements with the zeros that make all phases alike to those
                        // without
    for (size_t d = 0; d < kernel.size(); ++d) {
      if (window->strides[d] > 1 && window->dilations[d] > 1 && kernel[d] > 1) return {};
      dims.push_back(split(*window, d, x[d + 2], kernel[d]));
      padded *= static_cast<double>(dims.back().taps * dims.back().stride) / kernel[d];
    }
    constexpr double kMaxPadded = 8;
    return padded > kMaxPadded ? std::vector<TransposedDimension>() : dims;
  }

  ValueId add_value(const std::string& name, ir::DType dtype, Shape shape) {
    Value v;
    v.name = name;
    v.dtype = dtype;
    v.shape = std::move(shape);
    return graph_.values.push_back(std::move(v));
  }

  static Node interleaved(const Node& node, std::vector<ValueId> inputs, const std::vector<MoveStep>& steps) {
    Node move{node.name + "_interleave", kMoveOperator, node.opset, {}, std::move(inputs), node.outputs};
    int k = 0;
    for (const MoveStep& step : steps) move.attributes["step_" + std::to_string(k++)] = encode_step(step);
    return move;
  }

  // Emits a convolution for each phase, in the order of the output's first positions.
  void replace_by_phases(const Node& node, const std::vector<TransposedDimension>& dims, int64_t groups,
                         Nodes& nodes) {
    const int64_t batch = value(node.inputs[0]).shape[0], filters = value(node.outputs[0]).shape[1];
    const ir::DType dtype = value(node.outputs[0]).dtype;
    const Shape input(value(node.inputs[0]).shape.begin() + 2, value(node.inputs[0]).shape.end());
    Shape joined = {batch, filters};
    for (const TransposedDimension& s : dims) joined.push_back(s.output / s.stride);
    Node concat{node.name + "_phases", "Concat", node.opset, {{"axis", int64_t{1}}}, {}, {}};
    const std::vector<Phase> places = all_phases(dims);  // of the output
    for (size_t part = 0; part < places.size(); ++part) {
      Phase phase;
      for (size_t d = 0; d < dims.size(); ++d) {
        const int64_t from = places[part][d] + dims[d].pad;
        phase.push_back(from - floor_div(from, dims[d].stride) * dims[d].stride);
      }
      Shape begin, end, kernel, dilations;
      for (size_t d = 0; d < dims.size(); ++d) {
        const TransposedDimension& s = dims[d];
        const int64_t taps = own_taps(s, phase[d]), dilation = s.stride > 1 ? 1 : s.dilation;
        const int64_t q = floor_div(s.pad - phase[d] + s.stride - 1, s.stride);
        kernel.push_back(taps);
        dilations.push_back(dilation);
        begin.push_back((taps - 1) * dilation - q);
        end.push_back(q + s.output / s.stride - 1 - (input[d] - 1));
      }
      begin.insert(begin.end(), end.begin(), end.end());
      const std::string name = node.name + "_phase" + std::to_string(part);
      Node conv{name, "Conv", node.opset, {}, {node.inputs[0]}, {add_value(name, dtype, joined)}};
      conv.attributes = {
          {"group", groups}, {"pads", begin}, {"dilations", dilations}, {"kernel_shape", kernel}};
      conv.inputs.push_back(
          add_constant(graph_, name + "_weight",
                       split_weights(*value(node.inputs[1]).constant, groups, dims, {phase}, kernel)));
      if (node.input(2) != kNoValue) conv.inputs.push_back(node.inputs[2]);
      concat.inputs.push_back(conv.outputs[0]);
      nodes.push_back(std::move(conv));
    }
    joined[1] *= std::ssize(places);
    concat.outputs = {add_value(concat.name, dtype, joined)};
    Node move = interleaved(node, concat.outputs, interleave_parts(batch, filters, dims));
    nodes.push_back(std::move(concat));
    nodes.push_back(std::move(move));
  }

  void replace(const Node& node, const std::vector<TransposedDimension>& dims, Nodes& nodes) {
    const int64_t groups = node.integer("group", 1);
    if (better_apart(dims)) return replace_by_phases(node, dims, groups, nodes);
    const int64_t batch = value(node.inputs[0]).shape[0];
    Shape taps;
    for (const TransposedDimension& s : dims) taps.push_back(s.taps);
    lower::Tensor weights =
        split_weights(*value(node.inputs[1]).constant, groups, dims, all_phases(dims), taps);
    const int64_t filters = value(node.outputs[0]).shape[1];
    const int64_t phases = weights.shape[0] / filters;
    Shape shape = {batch, weights.shape[0]};
    Shape pads, dilations, kernel;
    for (const TransposedDimension& s : dims) {
      shape.push_back(s.count());
      pads.push_back(s.pad_begin);
      dilations.push_back(s.stride > 1 ? 1 : s.dilation);
      kernel.push_back(s.taps);
    }
    for (const TransposedDimension& s : dims) pads.push_back(s.pad_end);
    Node conv{node.name, "Conv", node.opset, {}, {node.inputs[0]}, {}};
    conv.attributes = {{"group", groups}, {"pads", pads}, {"dilations", dilations}, {"kernel_shape", kernel}};
    conv.inputs.push_back(add_constant(graph_, node.name + "_weight", std::move(weights)));
    if (node.input(2) != kNoValue) {
      const lower::Tensor& bias = *value(node.inputs[2]).constant;
      lower::Tensor repeated = lower::Tensor::zeros(bias.dtype, {filters * phases});
      for (int64_t i = 0; i < filters * phases; ++i) repeated.set(i, bias.at(i / phases));
      conv.inputs.push_back(add_constant(graph_, node.name + "_bias", std::move(repeated)));
    }
    if (phases == 1) {
      conv.outputs = node.outputs;
      nodes.push_back(std::move(conv));
      return;
    }
    conv.outputs = {add_value(node.name + "_phases", value(node.outputs[0]).dtype, shape)};
    Node move = interleaved(node, conv.outputs, interleave(batch, filters, dims));
    nodes.push_back(std::move(conv));
    nodes.push_back(std::move(move));
  }

  Graph& graph_;
};

}  // namespace

void split_conv_transpose(Graph& graph) { Splitter(graph).run(); }

}  // namespace tensorsmith::graph
