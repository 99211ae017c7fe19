#include "graph/ops/window.h"

#include <algorithm>

namespace tensorsmith::graph {

using ir::Expr;

bool Window::needs_padding() const {
  for (size_t d = 0; d < rank(); ++d) {
    if (pads_begin[d] != 0 || covered(d) > input[d]) return true;
  }
  return false;
}

Result<Window> read_window(OpContext& ctx, const Shape& input, const Shape& kernel) {
  const size_t rank = kernel.size();
  Window w;
  w.input = input;
  w.kernel = kernel;
  w.strides = ctx.geometry_attr("strides", rank, 1);
  w.dilations = ctx.geometry_attr("dilations", rank, 1);
  const Shape pads = ctx.geometry_attr("pads", 2 * rank, 0);
  w.pads_begin.assign(pads.begin(), pads.begin() + rank);
  w.pads_end.assign(pads.begin() + rank, pads.end());
  const std::string auto_pad = ctx.string_attr("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty()) {
    return ctx.invalid("attribute auto_pad has the unknown value '" + auto_pad + "'");
  }
  const bool ceil_mode = ctx.int_attr("ceil_mode", 0) != 0;
  if (ctx.error()) return *ctx.error();
  for (size_t d = 0; d < rank; ++d) {
    if (w.kernel[d] < 1 || w.kernel[d] > kMaxGeometry || w.strides[d] < 1 || w.dilations[d] < 1) {
      return ctx.invalid("kernel, strides and dilations must be positive");
    }
    if (auto_pad == "VALID") w.pads_begin[d] = w.pads_end[d] = 0;
    if (same) {
      const int64_t out = (input[d] + w.strides[d] - 1) / w.strides[d];
      const int64_t total = std::max<int64_t>((out - 1) * w.strides[d] + w.reach(d) - input[d], 0);
      w.pads_begin[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.pads_end[d] = total - w.pads_begin[d];
    }
    const int64_t free = input[d] + w.pads_begin[d] + w.pads_end[d] - w.reach(d);
    if (free < 0 || input[d] == 0) {
      return ctx.invalid("the kernel (extent " + std::to_string(w.reach(d)) +
                         ") is larger than the padded input (extent " +
                         std::to_string(input[d] + w.pads_begin[d] + w.pads_end[d]) +
                         ") in spatial dimension " + std::to_string(d));
    }
    int64_t out = (ceil_mode ? (free + w.strides[d] - 1) / w.strides[d] : free / w.strides[d]) + 1;
    // A window that would begin in the end padding is left out.
    if (ceil_mode && (out - 1) * w.strides[d] >= input[d] + w.pads_begin[d] && out > 1) --out;
    w.output.push_back(out);
  }
  return w;
}

Result<TransposedWindow> read_transposed_window(OpContext& ctx, const Shape& input, const Shape& kernel) {
  const size_t rank = kernel.size();
  TransposedWindow g;
  g.strides = ctx.geometry_attr("strides", rank, 1);
  g.dilations = ctx.geometry_attr("dilations", rank, 1);
  const Shape extra = ctx.geometry_attr("output_padding", rank, 0);
  const Shape pads = ctx.geometry_attr("pads", 2 * rank, 0);
  const std::string auto_pad = ctx.string_attr("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  std::optional<Shape> wanted;
  if (ctx.has_attr("output_shape")) {
    wanted = ctx.ints_attr("output_shape");
    if (wanted && wanted->size() == rank + 2) wanted->erase(wanted->begin(), wanted->begin() + 2);
    if (wanted && wanted->size() != rank) return ctx.invalid("attribute output_shape has the wrong length");
  }
  if (ctx.error()) return *ctx.error();
  for (size_t d = 0; d < rank; ++d) {
    if (kernel[d] < 1 || g.strides[d] < 1 || g.dilations[d] < 1 || extra[d] < 0 || input[d] < 1 ||
        kernel[d] > kMaxGeometry || input[d] > kMaxGeometry) {
      return ctx.invalid("data, kernel, strides and dilations must be positive");
    }
    const int64_t full = (input[d] - 1) * g.strides[d] + (kernel[d] - 1) * g.dilations[d] + 1 + extra[d];
    int64_t begin = auto_pad == "VALID" ? 0 : pads[d];
    int64_t out = full - begin - (auto_pad == "VALID" ? 0 : pads[rank + d]);
    if (wanted || same) {
      if (wanted && ((*wanted)[d] < 1 || (*wanted)[d] > kMaxElements)) {
        return ctx.invalid("attribute output_shape is out of range");
      }
      out = wanted ? (*wanted)[d] : input[d] * g.strides[d];
      // Elements that the output requests beyond the full result are zeros at the end.
      const int64_t total = std::max<int64_t>(full - out, 0);
      begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    }
    if (out < 1 || out > kMaxElements || begin > kMaxElements || begin < -kMaxElements) {
      return ctx.invalid("the output would have extent " + std::to_string(out) + " in spatial dimension " +
                         std::to_string(d));
    }
    g.pads_begin.push_back(begin);
    g.output.push_back(out);
  }
  return g;
}

ir::Buffer pad_for_windows(OpContext& ctx, const ir::Buffer& x, const Window& window, const Expr& fill,
                           const std::function<Expr(Expr)>& value) {
  if (!window.needs_padding()) return value ? map_elements(ctx, "data", x, value) : x;
  std::vector<ir::Axis> axes;
  axes.push_back({ir::Var("n"), x->shape[0]});
  axes.push_back({ir::Var("c"), x->shape[1]});
  Exprs source = {axes[0].var, axes[1].var};
  Expr inside;
  const auto require = [&inside](const Expr& condition) {
    inside = inside.defined() ? inside && condition : condition;
  };
  static const char* const kNames[] = {"d", "h", "w"};
  for (size_t d = 0; d < window.rank(); ++d) {
    const std::string name = window.rank() <= 3 ? kNames[3 - window.rank() + d] : "s" + std::to_string(d);
    const int64_t begin = window.pads_begin[d];
    const int64_t extent = window.covered(d);
    axes.push_back({ir::Var(name), extent});
    const Expr index = axes.back().var;
    source.push_back(index - Expr(begin));
    if (begin > 0) require(index >= Expr(begin));
    if (extent - begin > window.input[d]) require(index < Expr(window.input[d] + begin));
  }
  Expr read = ir::load(x, source);
  if (value) read = value(read);
  Expr body = inside.defined() ? ir::select(inside, read, fill) : read;
  return ctx.compute("pad", std::move(axes), std::move(body));
}

Exprs window_indices(const Window& window, const Expr& n, const Expr& c, std::span<const Expr> out,
                     std::span<const Expr> k) {
  Exprs indices = {n, c};
  for (size_t d = 0; d < window.rank(); ++d) {
    indices.push_back(out[d] * Expr(window.strides[d]) + k[d] * Expr(window.dilations[d]));
  }
  return indices;
}

ir::Buffer convolve(OpContext& ctx, const std::string& name, const ir::Buffer& data,
                    const ir::Buffer& weights, const Window& window, int64_t groups) {
  static const char* const kOut[] = {"d", "h", "w"};
  static const char* const kReduce[] = {"rd", "rh", "rw"};
  const size_t rank = window.rank();
  const int64_t channels_per_group = weights->shape[1];
  const int64_t filters_per_group = weights->shape[0] / groups;

  std::vector<ir::Axis> spatial;
  spatial.push_back({ir::Var("n"), data->shape[0]});
  spatial.push_back({ir::Var("k"), weights->shape[0]});
  const Expr n = spatial[0].var;
  const Expr k = spatial[1].var;
  Exprs out;
  std::vector<ir::Axis> reduce;
  const Expr rc = add_reduce_axis(reduce, "rc", channels_per_group);
  Exprs r;
  for (size_t d = 0; d < rank; ++d) {
    const bool named = rank <= 3;
    spatial.push_back({ir::Var(named ? kOut[3 - rank + d] : "s" + std::to_string(d)), window.output[d]});
    out.push_back(spatial.back().var);
    r.push_back(
        add_reduce_axis(reduce, named ? kReduce[3 - rank + d] : "r" + std::to_string(d), window.kernel[d]));
  }
  Expr channel = rc;
  if (groups > 1) {
    const Expr group = filters_per_group == 1 ? k : ir::floordiv(k, filters_per_group);
    channel = channels_per_group == 1 ? group : group * Expr(channels_per_group) + rc;
  }
  Exprs weight_index = {k, rc};
  weight_index.insert(weight_index.end(), r.begin(), r.end());
  Expr body = ctx.product(ir::load(data, window_indices(window, n, channel, out, r)),
                          ir::load(weights, weight_index));
  const ir::Combiner combiner = reduce.empty() ? ir::Combiner::kNone : ir::Combiner::kSum;
  return ctx.reduce(name, std::move(spatial), std::move(reduce), combiner, std::move(body));
}

std::string convolution_name(const std::string& stem, size_t spatial_rank, int64_t groups,
                             int64_t channels_per_group) {
  const std::string base = stem + std::to_string(spatial_rank) + "d";
  if (groups == 1) return base;
  return (channels_per_group == 1 ? "depthwise_" : "group_") + base;
}

}  // namespace tensorsmith::graph
