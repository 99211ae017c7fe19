#include <algorithm>
#include <cmath>

#include "graph/ops/registry.h"
#include "graph/ops/window.h"
#include "graph/passes/passes.h"

namespace tensorsmith::graph {

namespace {

// The taps of one dimension, first to last, that meet some input element.
struct Taps {
  int64_t first = 0, last = 0;
  int64_t count() const { return last - first + 1; }
};

// Tap k of output o reads element o * stride + k * dilation - pad.
Taps taps_inside(const Window& window, size_t d, int64_t input, int64_t kernel) {
  const int64_t stride = window.strides[d], dilation = window.dilations[d], pad = window.pads_begin[d];
  const auto meets = [&](int64_t k) {
    const int64_t least = k * dilation - pad;
    if (least >= input) return false;
    const int64_t o =
        least >= 0 ? 0 : (-least + stride - 1) / stride;  // the first tap that is not before the input
    return o < window.output[d] && least + o * stride < input;
  };
  Taps taps{0, kernel - 1};
  while (taps.first < taps.last && !meets(taps.first)) ++taps.first;
  while (taps.last > taps.first && !meets(taps.last)) --taps.last;
  return taps;
}

lower::Tensor slice(const lower::Tensor& weights, const std::vector<Taps>& taps) {
  lower::Tensor result = weights;
  for (size_t d = 0; d < taps.size(); ++d) {
    const lower::Tensor whole = std::move(result);
    Shape shape = whole.shape;
    shape[d + 2] = taps[d].count();
    result = lower::Tensor::zeros(whole.dtype, shape);
    int64_t outer = 1, inner = ir::bytes_of(whole.dtype);
    for (size_t i = 0; i < d + 2; ++i) outer *= shape[i];
    for (size_t i = d + 3; i < shape.size(); ++i) inner *= shape[i];
    for (int64_t o = 0; o < outer; ++o)
      std::copy_n(whole.data.begin() + (o * whole.shape[d + 2] + taps[d].first) * inner,
                  taps[d].count() * inner, result.data.begin() + o * taps[d].count() * inner);
  }
  return result;
}

// Infinity and NaN times the zeros of the padding are NaN.
bool is_finite(const lower::Tensor& weights) {
  for (int64_t i = 0; i < weights.num_elements(); ++i)
    if (!std::isfinite(weights.at(i).f)) return false;
  return true;
}

void trim(Graph& graph, Node& node) {
  const auto value = [&](ValueId id) -> const Value& { return graph.values[id]; };
  if (node.op != "Conv" || node.input(1) == kNoValue) return;
  const auto weights = value(node.inputs[1]).constant;
  const Shape& x = value(node.inputs[0]).shape;
  if (weights == nullptr || x.size() < 3) return;
  const Shape input(x.begin() + 2, x.end()), kernel(weights->shape.begin() + 2, weights->shape.end());
  WorkloadBuilder builder;
  OpContext ctx(graph, node, {}, builder);
  const auto window = read_window(ctx, input, kernel);
  if (!window.ok()) return;
  std::vector<Taps> taps;
  Shape begin, end, sizes;
  bool fewer = false;
  for (size_t d = 0; d < kernel.size(); ++d) {
    if (input[d] < 1 || window->output[d] < 1) return;
    Taps t = taps_inside(*window, d, input[d], kernel[d]);
    const int64_t dilation = window->dilations[d];
    // Negative pads would slice the input, so pads must not become negative.
    t.first = std::max<int64_t>(0, std::min(t.first, window->pads_begin[d] / dilation));
    fewer = fewer || t.count() < kernel[d];
    sizes.push_back(t.count());
    begin.push_back(window->pads_begin[d] - t.first * dilation);
    // The padding that the last output's last tap needs; up to a stride more would give no further
    // output.
    end.push_back((window->output[d] - 1) * window->strides[d] + (t.count() - 1) * dilation + 1 - begin[d] -
                  input[d]);
    if (end.back() < 0) {
      if (-end.back() >= window->strides[d]) return;
      end.back() = 0;
    }
    taps.push_back(t);
  }
  if (!fewer || !is_finite(*weights)) return;
  node.inputs[1] = add_constant(graph, node.name + "_trimmed", slice(*weights, taps));
  begin.insert(begin.end(), end.begin(), end.end());
  node.attributes.insert_or_assign("pads", begin);
  node.attributes.insert_or_assign("kernel_shape", sizes);
  node.attributes.erase("auto_pad");
}

}  // namespace

void trim_convolutions(Graph& graph) {
  for (Node& node : graph.nodes) trim(graph, node);
}

}  // namespace tensorsmith::graph
