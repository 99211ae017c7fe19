// The graph passes. Each keeps the graph's meaning and leaves it valid (verify_graph).
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tensorsmith::graph {

// Nodes whose inputs are all constants become constants, within the limits of time and memory; a node beyond
// them stays.
Status fold_constants(Graph& graph, const OptimizeOptions& options);

// Removes nodes and values that no output needs; values are renumbered.
void eliminate_dead_nodes(Graph& graph);

// Removes nodes that return an input unchanged: Identity, Dropout, a Cast to the same dtype, a Transpose that
// moves nothing, a Reshape to the same shape, ... The names of graph outputs stay.
Status eliminate_identities(Graph& graph);

// Conv, MatMul and Gemm between DequantizeLinear and QuantizeLinear (the QDQ format) are computed on the
// integers. Scales and zero points must be constant: one of each tensor, or one an output channel of
// the weights. The sum is rounded once, from an exact integer: results may differ from those of f32 sums by
// one step of the quantization. A Relu in between goes where the output's zero point is the lowest integer.
// Zero points of weights that are the same for all channels become one.
//   DequantizeLinear(x), DequantizeLinear(w) -> Conv -> QuantizeLinear  =>  QLinearConv(x, w)
void fuse_quantized(Graph& graph);

// Scales and shifts a channel by constants (BatchNormalization, Mul, Div, Add, Sub) that directly follow a
// convolution or Gemm with constant weights move into those; other BatchNormalizations become Mul and Add.
//   Conv(x, w, b) -> BatchNormalization(., s, t, m, v)  =>  Conv(x, w * f, (b - m) * f + t), f = s / sqrt(v +
//   eps)
void fold_channel_scales(Graph& graph);

// Pad with zeros before Conv or AveragePool moves into their pads.
//   Pad(x, spatial p) -> Conv(pads q)  =>  Conv(x, pads p + q)
void fold_pads(Graph& graph);

// Taps of a convolution with constant weights that meet padding only are left out: of atrous convolutions whose dilation
// exceeds the image most are. Weights that are not all finite stay.
//   Conv(x 20 x 20, w 3 x 3, dilations 24, pads 24)  =>  Conv(x, w 1 x 1)
void trim_convolutions(Graph& graph);

// ConvTranspose with constant weights and stride s becomes a convolution with s filters a dimension for each
// of its own, one for each residue of the output's place, whose results are interleaved: no tap meets the
// zeros that lie between the input's elements. (Shi et al., "Is the deconvolution layer the same as a
// convolutional layer?", 2016.) Dilated dimensions of stride > 1 stay.
//   ConvTranspose(x, w (C, K, 2, 2), strides 2)  =>  Conv(x, w' (4 K, C, 1, 1)) -> Move
// Residues become convolutions of their own where they have different taps or lie in different places of the input, and one
// for all would compute more.
//   ConvTranspose(x, w (C, K, 4, 4), strides 2, pads 1)  =>  4 Conv(x, w' (K, C, 2, 2)) -> Concat -> Move
void split_conv_transpose(Graph& graph);

// Chains of Reshape, Transpose, Slice and Gather at constant indices read their source directly, as one node,
// where rows stay contiguous reads. Channel shuffles and head splits become single kernels or part of their
// reader's.
//   Reshape -> Transpose -> Reshape  =>  Move(step_0 = ..., step_1 = ..., step_2 = ...)
void merge_moves(Graph& graph);

// The factors of MatMul, Gemm and Conv of f32 are rounded to TF32, where sums are so long that tensor cores compute them.
//   MatMul(a, b)  =>  MatMul(round_tf32(a), round_tf32(b)), within the operator
void round_products(Graph& graph);

// Ids in range, each value defined once and before its use, outputs defined.
Status verify_graph(const Graph& graph);

// Uses of each value by nodes and graph outputs.
std::vector<int> count_uses(const Graph& graph);
// Index of the node that makes each value, or -1.
std::vector<int> find_producers(const Graph& graph);
// A new value with contents.
ValueId add_constant(Graph& graph, std::string name, lower::Tensor tensor);

}  // namespace tensorsmith::graph
