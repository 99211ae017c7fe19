// Sliding windows: convolutions and pooling.
#pragma once

#include <string>
#include <vector>

#include "graph/ops/index.h"

namespace tensorsmith::graph {

// One value per spatial dimension.
struct Window {
  Shape input;
  Shape kernel;
  Shape strides;
  Shape dilations;
  Shape pads_begin;
  Shape pads_end;  // as given or determined by auto_pad; with ceil_mode the last window may read beyond it
  Shape output;

  size_t rank() const { return kernel.size(); }
  // Extent that one window covers: (kernel - 1) * dilation + 1.
  int64_t reach(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
  // Extent that all windows together read, including the padding at the front.
  int64_t covered(size_t d) const { return (output[d] - 1) * strides[d] + reach(d); }
  bool needs_padding() const;
};

// Reads strides, dilations, pads, auto_pad and ceil_mode of a node whose input has these spatial extents.
Result<Window> read_window(OpContext& ctx, const Shape& input, const Shape& kernel);

// A transposed convolution: input element i and tap r contribute to output element i * stride + r *
// dilation - pad. One value per spatial dimension; pads may be negative.
struct TransposedWindow {
  Shape strides, dilations, pads_begin, output;
};

// Reads strides, dilations, pads, auto_pad, output_padding and output_shape.
Result<TransposedWindow> read_transposed_window(OpContext& ctx, const Shape& input, const Shape& kernel);

// Returns x (N, C, spatial...) extended to what the windows cover, with `fill` outside. `value`
// maps each read element (and determines the dtype). Returns x itself if no padding is needed and
// `value` is null.
ir::Buffer pad_for_windows(OpContext& ctx, const ir::Buffer& x, const Window& window, const ir::Expr& fill,
                           const std::function<ir::Expr(ir::Expr)>& value = nullptr);

// Indices (n, c, out_d * stride_d + k_d * dilation_d) into a padded tensor.
Exprs window_indices(const Window& window, const ir::Expr& n, const ir::Expr& c,
                     std::span<const ir::Expr> out, std::span<const ir::Expr> k);

// Grouped convolution of padded data (N, C, covered...) with weights (K, C / groups, kernel...) of the same
// dtype:
//   out[n, k, y...] = sum_{c, r...} data[n, k / (K / groups) * (C / groups) + c, y * stride + r * dilation]
//                                   * w[k, c, r...]
// Reduction axes of extent 1 (depthwise channels, 1x1 kernels) are left out.
ir::Buffer convolve(OpContext& ctx, const std::string& name, const ir::Buffer& data,
                    const ir::Buffer& weights, const Window& window, int64_t groups);

// Returns "conv2d", "depthwise_conv2d", "group_conv1d", ...
std::string convolution_name(const std::string& stem, size_t spatial_rank, int64_t groups,
                             int64_t channels_per_group);

}  // namespace tensorsmith::graph
