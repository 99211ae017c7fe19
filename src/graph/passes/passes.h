// The graph passes. Each keeps the graph's meaning and leaves it valid (verify_graph).
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tensorsmith::graph {

// Nodes whose inputs are all constants become constants, within the limits of time and memory;
// other nodes stay.
Status fold_constants(Graph& graph, const OptimizeOptions& options);

// Removes nodes and values that no output needs; values are renumbered.
void eliminate_dead_nodes(Graph& graph);

// Removes nodes that return an input unchanged: Identity, Dropout, a Cast to the same dtype, a
// Transpose that moves nothing, a Reshape to the same shape, ... The names of graph outputs are
// kept.
Status eliminate_identities(Graph& graph);

// Conv, MatMul and Gemm between DequantizeLinear and QuantizeLinear (the QDQ format) are computed
// on integers. Scales and zero points must be constant: one per tensor, or one per output channel
// of the weights. The sum is rounded once, from an exact integer, so results may differ from those
// of f32 sums by one quantization step. A Relu in between is removed if the output's zero point is
// the lowest integer. Zero points of weights that are the same for all channels become one.
//   DequantizeLinear(x), DequantizeLinear(w) -> Conv -> QuantizeLinear  =>  QLinearConv(x, w)
void fuse_quantized(Graph& graph);

// Scales and shifts of channels by constants (BatchNormalization, Mul, Div, Add, Sub) that directly
// follow a convolution or Gemm with constant weights are folded into those; other
// BatchNormalizations become Mul and Add.
//   Conv(x, w, b) -> BatchNormalization(., s, t, m, v)  =>  Conv(x, w * f, (b - m) * f + t), f = s / sqrt(v +
//   eps)
void fold_channel_scales(Graph& graph);

// Padding with zeros before Conv or AveragePool is folded into their pads.
//   Pad(x, spatial p) -> Conv(pads q)  =>  Conv(x, pads p + q)
void fold_pads(Graph& graph);

// Taps of a convolution with constant weights that only meet padding are removed. In atrous
// convolutions whose dilation exceeds the image, these are most taps. Weights that are not all
// finite are left unchanged.
//   Conv(x 20 x 20, w 3 x 3, dilations 24, pads 24)  =>  Conv(x, w 1 x 1)
void trim_convolutions(Graph& graph);

// ConvTranspose with constant weights and stride s becomes a convolution with s filters per
// dimension for each of its own, one for each residue of the output's position. Their results are
// interleaved, and no tap meets the zeros between the input's elements. (Shi et al., "Is the
// deconvolution layer the same as a convolutional layer?", 2016.) Dilated dimensions with stride >
// 1 are not split.
//   ConvTranspose(x, w (C, K, 2, 2), strides 2)  =>  Conv(x, w' (4 K, C, 1, 1)) -> Move
// Residues become separate convolutions if they have different taps or different positions in the
// input, so that one convolution for all would compute more.
//   ConvTranspose(x, w (C, K, 4, 4), strides 2, pads 1)  =>  4 Conv(x, w' (K, C, 2, 2)) -> Concat -> Move
void split_conv_transpose(Graph& graph);

// Chains of Reshape, Transpose, Slice and Gather at constant indices become one node that reads
// their source directly, if rows remain contiguous reads. Channel shuffles and head splits become
// single kernels or part of their reader's.
//   Reshape -> Transpose -> Reshape  =>  Move(step_0 = ..., step_1 = ..., step_2 = ...)
void merge_moves(Graph& graph);

// The factors of f32 MatMul, Gemm and Conv are rounded to TF32 if the sums are long enough for
// tensor cores.
//   MatMul(a, b)  =>  MatMul(round_tf32(a), round_tf32(b)), within the operator
void round_products(Graph& graph);

// Checks that ids are in range, each value is defined once and before its use, and outputs are
// defined.
Status verify_graph(const Graph& graph);

// Returns the number of uses of each value by nodes and graph outputs.
IdVector<ValueId, int> count_uses(const Graph& graph);
// Returns the node that makes each value; an invalid id for inputs and constants.
IdVector<ValueId, NodeId> find_producers(const Graph& graph);
// Adds a new value with contents.
ValueId add_constant(Graph& graph, std::string name, lower::Tensor tensor);

}  // namespace tensorsmith::graph
