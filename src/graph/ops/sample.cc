// Reads at computed positions: GridSample, RoiAlign, MaxUnpool; determinants.
#include <algorithm>
#include <numeric>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;

Expr f(const Expr& like, double v) { return ir::make_const(like.dtype(), v); }
Expr floor_of(const Expr& x) { return ir::call(Intrinsic::kFloor, {x}); }

// Reflects x into [low, high] as by mirrors at both ends.
Expr mirror(const Expr& x, double low, double high) {
  if (high <= low) return f(x, low);
  const Expr range = f(x, high - low);
  const Expr distance = ir::call(Intrinsic::kAbs, {x - f(x, low)});
  const Expr turns = floor_of(distance / range);
  const Expr rest = distance - turns * range;
  const Expr odd = turns - f(x, 2) * floor_of(turns / f(x, 2));
  return ir::select(odd == f(x, 0), f(x, low) + rest, f(x, high) - rest);
}

struct GridAxis {
  int64_t extent = 0;
  bool align_corners = false;
  std::string padding;

  double low() const { return align_corners ? 0 : -0.5; }
  double high() const { return extent - (align_corners ? 1.0 : 0.5); }

  // Maps [-1, 1] to pixels. Cubic interpolation clamps each neighbour separately and not the
  // position.
  Expr position(const Expr& x, bool cubic) const {
    const double n = extent;
    Expr p =
        align_corners ? (x + f(x, 1)) * f(x, (n - 1) / 2) : ((x + f(x, 1)) * f(x, n) - f(x, 1)) * f(x, 0.5);
    if (padding == "border" && !cubic) p = ir::min(ir::max(p, f(x, 0)), f(x, n - 1));
    if (padding == "reflection") p = mirror(p, low(), high());
    return p;
  }
  // Returns the pixel at an integral position, in range.
  Expr index(const Expr& p) const {
    const Expr folded = padding == "reflection" ? mirror(p, low(), high()) : p;
    const double last = extent - 1;
    return ir::min(ir::max(ir::cast(DType::kI64, ir::min(ir::max(folded, f(p, 0)), f(p, last))), 0),
                   extent - 1);
  }
  Expr inside(const Expr& p) const { return p >= f(p, 0) && p <= f(p, extent - 1); }
};

// Keys' cubic convolution, a = -0.75, for neighbours -1, 0, 1, 2.
Exprs cubic_weights(const Expr& t) {
  constexpr double a = -0.75;
  const auto near = [&](const Expr& s) { return (f(s, a + 2) * s - f(s, a + 3)) * s * s + f(s, 1); };
  const auto far = [&](const Expr& s) {
    return ((f(s, a) * s - f(s, 5 * a)) * s + f(s, 8 * a)) * s - f(s, 4 * a);
  };
  return {far(t + f(t, 1)), near(t), near(f(t, 1) - t), far(f(t, 2) - t)};
}

// Data (N, C, spatial dimensions) and a grid (N, the result's spatial dimensions, positions); the positions are those of the
// last dimension first.
Result<Buffers> emit_grid_sample(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const Shape& grid = ctx.shape(1);
  const size_t rank = x.size() < 3 ? 0 : x.size() - 2;
  if (rank < 1 || rank > 3 || grid.size() != x.size() || grid.back() != std::ssize(x) - 2 ||
      grid[0] != x[0]) {
    return ctx.unsupported("data " + describe(ctx.dtype(0), x) + " with grid " +
                           describe(ctx.dtype(1), grid) +
                           "; the data must have one to three spatial dimensions, and the grid as many");
  }
  std::string mode = ctx.string_attr("mode", "bilinear");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  const std::string padding = ctx.string_attr("padding_mode", "zeros");
  if ((mode != "bilinear" && mode != "nearest" && mode != "bicubic") ||
      (padding != "zeros" && padding != "border" && padding != "reflection") ||
      std::ranges::any_of(x.begin() + 2, x.end(), [](int64_t extent) { return extent < 1; })) {
    return ctx.invalid("unknown mode '" + mode + "' or padding_mode '" + padding + "', or an empty image");
  }
  const bool cubic = mode == "bicubic";
  if (cubic && rank > 2) return ctx.unsupported("cubic interpolation in three dimensions");
  const bool align = ctx.int_attr("align_corners", 0) != 0;
  Shape shape = {x[0], x[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs v = vars_of(axes);
  std::vector<GridAxis> places;
  Exprs positions;
  for (size_t d = 0; d < rank; ++d) {
    places.push_back({x[d + 2], align, padding});
    Exprs at = {v[0]};
    at.insert(at.end(), v.begin() + 2, v.end());
    at.push_back(static_cast<int64_t>(rank - 1 - d));
    positions.push_back(places[d].position(ir::load(ctx.in(1), at), cubic));
  }
  const auto pixel = [&](const Exprs& at) {
    Exprs indices = {v[0], v[1]};
    Expr inside;
    for (size_t d = 0; d < rank; ++d) {
      indices.push_back(places[d].index(at[d]));
      const Expr here = places[d].inside(at[d]);
      inside = inside.defined() ? inside && here : here;
    }
    const Expr read = ir::load(ctx.in(0), indices);
    return padding == "zeros" ? ir::select(inside, read, ir::make_const(ctx.dtype(0), 0)) : read;
  };
  if (mode == "nearest") {
    for (Expr& position : positions) position = ir::call(Intrinsic::kRound, {position});
    return Buffers{ctx.compute("grid_sample", std::move(axes), pixel(positions))};
  }
  // Weights of the neighbours in each dimension.
  std::vector<Exprs> weights;
  Exprs lowest;
  int64_t neighbours = 1;
  for (const Expr& position : positions) {
    lowest.push_back(floor_of(position));
    const Expr t = position - lowest.back();
    weights.push_back(cubic ? cubic_weights(t) : Exprs{f(t, 1) - t, t});
    neighbours *= std::ssize(weights.back());
  }
  const int first = cubic ? -1 : 0;
  Expr sum;
  for (int64_t n = 0; n < neighbours; ++n) {
    Exprs at(rank);
    Expr weight;
    int64_t stride = neighbours;
    for (size_t d = 0; d < rank; ++d) {
      const auto width = std::ssize(weights[d]);
      stride /= width;
      const int64_t i = n / stride % width;
      at[d] = lowest[d] + f(lowest[d], first + i);
      weight = weight.defined() ? weight * weights[d][i] : weights[d][i];
    }
    if (weight.dtype() != ctx.dtype(0)) weight = ir::cast(ctx.dtype(0), weight);
    const Expr term = weight * pixel(at);
    sum = sum.defined() ? sum + term : term;
  }
  return Buffers{ctx.compute("grid_sample", std::move(axes), std::move(sum))};
}

// Inputs: x (N, C, H, W), rois (R, 4) as x1, y1, x2, y2, and a batch index per roi. Each output
// cell is the mean or maximum of sampling_ratio^2 bilinear samples.
Result<Buffers> emit_roi_align(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const Shape& rois = ctx.shape(1);
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 4 || ctx.shape(2) != Shape{rois[0]} || x[0] < 1 ||
      x[2] < 1 || x[3] < 1) {
    return ctx.invalid("data, rois and batch_indices do not fit");
  }
  const std::string mode = ctx.string_attr("mode", "avg");
  if (mode != "avg" && mode != "max") return ctx.invalid("unknown mode '" + mode + "'");
  const bool largest = mode == "max";
  const int64_t height = ctx.int_attr("output_height", 1);
  const int64_t width = ctx.int_attr("output_width", 1);
  const int64_t samples = ctx.int_attr("sampling_ratio", 0);
  if (height < 1 || width < 1 || height > kMaxGeometry || width > kMaxGeometry) {
    return ctx.invalid("the output size must be positive");
  }
  if (samples < 1 || samples > 1024) return ctx.unsupported("sampling_ratio 0 (adaptive)");
  const double scale = ctx.float_attr("spatial_scale", 1.0);
  const bool half_pixel =
      ctx.string_attr("coordinate_transformation_mode",
                      ctx.opset() >= 16 ? "half_pixel" : "output_half_pixel") == "half_pixel";
  std::vector<ir::Axis> axes = axes_for({rois[0], x[1], height, width});
  const Exprs v = vars_of(axes);
  std::vector<ir::Axis> reduce;
  const Expr sy = add_reduce_axis(reduce, "sy", samples);
  const Expr sx = add_reduce_axis(reduce, "sx", samples);
  const DType dtype = ctx.dtype(0);
  const auto constant = [&](double value) { return ir::make_const(dtype, value); };
  struct Sample {
    Expr low, high, weight, outside;
  };
  const auto place = [&](int64_t begin, int64_t end, const Expr& cell, const Expr& sample, int64_t cells,
                         int64_t extent) {
    const double shift = half_pixel ? 0.5 : 0;
    const Expr start = ir::load(ctx.in(1), {v[0], begin}) * constant(scale) - constant(shift);
    Expr length = ir::load(ctx.in(1), {v[0], end}) * constant(scale) - constant(shift) - start;
    if (!half_pixel) length = ir::max(length, constant(1));
    const Expr bin = length / constant(cells);
    const Expr position = start + ir::cast(dtype, cell) * bin +
                          (ir::cast(dtype, sample) + constant(0.5)) * bin / constant(samples);
    Sample s;
    s.outside = position < constant(-1) || position > constant(extent);
    const Expr inner = ir::min(ir::max(position, constant(0)), constant(extent - 1));
    s.low = ir::min(ir::max(ir::cast(DType::kI64, floor_of(inner)), 0), extent - 1);
    s.high = ir::min(s.low + 1, extent - 1);
    s.weight = inner - floor_of(inner);
    return s;
  };
  const Sample row = place(1, 3, v[2], sy, height, x[2]);
  const Sample column = place(0, 2, v[3], sx, width, x[3]);
  const Expr n = ir::min(ir::max(ir::load(ctx.in(2), {v[0]}), 0), x[0] - 1);
  const auto read = [&](const Expr& h, const Expr& w) { return ir::load(ctx.in(0), {n, v[1], h, w}); };
  const Expr one = constant(1);
  const auto pair = [&](const Expr& h) -> Exprs {
    return {read(h, column.low) * (one - column.weight), read(h, column.high) * column.weight};
  };
  const Exprs top = pair(row.low), bottom = pair(row.high);
  const Expr inside = largest ? ir::max(ir::max(top[0] * (one - row.weight), top[1] * (one - row.weight)),
                                        ir::max(bottom[0] * row.weight, bottom[1] * row.weight))
                              : (top[0] + top[1]) * (one - row.weight) + (bottom[0] + bottom[1]) * row.weight;
  Expr body = ir::select(row.outside || column.outside, constant(0), inside);
  const Combiner combiner = reduce.empty() ? Combiner::kNone : largest ? Combiner::kMax : Combiner::kSum;
  const ir::Buffer sum = ctx.reduce(largest ? "roi_max" : "roi_sum", std::move(axes), std::move(reduce),
                                    combiner, std::move(body));
  if (largest) return Buffers{sum};
  return Buffers{
      map_elements(ctx, "roi_align", sum, [&](const Expr& e) { return e / constant(samples * samples); })};
}

// Writes each x to its index (in the flattened output of the default size); the rest is 0. Of
// several elements with the same index, as from overlapping windows, the last one is kept. An index
// may be in any channel. Those that MaxPool computes for data of that size are in their own
// channel, so only that channel is searched then.
Result<Buffers> emit_max_unpool(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  if (x.size() < 3 || ctx.shape(1) != x)
    return ctx.invalid("data must have rank 3 or more and one index per element");
  const size_t rank = x.size() - 2;
  const Shape kernel = ctx.geometry_attr("kernel_shape", rank, 1);
  const Shape strides = ctx.geometry_attr("strides", rank, 1);
  const Shape pads = ctx.geometry_attr("pads", 2 * rank, 0);
  Shape shape = x;
  for (size_t d = 0; d < rank; ++d) {
    if (x[d + 2] < 1 || x[d + 2] > kMaxGeometry || strides[d] < 1)
      return ctx.invalid("bad extents or strides");
    shape[d + 2] = (x[d + 2] - 1) * strides[d] + kernel[d] - pads[d] - pads[d + rank];
  }
  const Shape indexed = shape;  // the shape that the indices count in
  if (ctx.has(2)) {
    TS_ASSIGN_OR_RETURN(shape, ctx.constant_ints(2, "output_shape"));
  }
  if (!is_reasonable(shape) || !is_reasonable(indexed) || shape.size() != x.size() || product(indexed) == 0 ||
      shape[0] != x[0] || shape[1] != x[1]) {
    return ctx.invalid("the output would have shape " + describe(ctx.dtype(0), shape));
  }
  for (size_t d = 2; d < x.size(); ++d) {
    if (shape[d] < indexed[d]) return ctx.invalid("output_shape is smaller than the default");
  }
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs v = vars_of(axes);
  const Shape* pooled = ctx.pooled_shape(1);
  const bool own_channel = product(x) == 0 || (pooled != nullptr && *pooled == indexed);
  std::vector<ir::Axis> reduce;
  Exprs source;
  for (size_t d = 0; d < x.size(); ++d) {
    const bool fixed = d < 2 && own_channel;
    source.push_back(fixed ? v[d] : add_reduce_axis(reduce, "r" + std::to_string(d), x[d]));
  }
  const Expr target = linear_index(indexed, v);
  Expr hit = ir::load(ctx.in(1), source) == target;
  for (size_t d = 2; d < x.size(); ++d) {
    if (shape[d] > indexed[d]) hit = hit && v[d] < Expr(indexed[d]);
  }
  const Combiner combiner = reduce.empty() ? Combiner::kNone : Combiner::kMax;
  const ir::Buffer last = ctx.reduce("max_unpool_last", std::move(axes), std::move(reduce), combiner,
                                     ir::select(hit, linear_index(x, source), -1));
  std::vector<ir::Axis> out = axes_for(shape);
  const Exprs at = vars_of(out);
  if (product(x) == 0)
    return Buffers{ctx.compute("max_unpool", std::move(out), ir::make_const(ctx.dtype(0), 0))};
  const Expr position = ir::load(last, at);
  const Exprs linear = {ir::min(ir::max(position, 0), product(x) - 1)};
  Expr body = ir::select(position >= 0, ir::load(ctx.in(0), reshape_indices(x, {product(x)}, linear)),
                         ir::make_const(ctx.dtype(0), 0));
  return Buffers{ctx.compute("max_unpool", std::move(out), std::move(body))};
}

// Leibniz formula (sum over permutations), for small matrices.
Result<Buffers> emit_det(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  if (x.size() < 2 || x[x.size() - 1] != x[x.size() - 2]) return ctx.invalid("the matrices must be square");
  const int64_t n = x.back();
  if (n < 1 || n > 4) return ctx.unsupported("matrices larger than 4x4");
  std::vector<ir::Axis> axes = axes_for(Shape(x.begin(), x.end() - 2));
  const Exprs batch = vars_of(axes);
  std::vector<int64_t> permutation(n);
  std::iota(permutation.begin(), permutation.end(), int64_t{0});
  Expr sum;
  do {
    int inversions = 0;
    Expr term;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) {
        inversions += permutation[i] > permutation[j] ? 1 : 0;
      }
      Exprs at = batch;
      at.push_back(i);
      at.push_back(permutation[i]);
      const Expr factor = ir::load(ctx.in(0), at);
      term = term.defined() ? term * factor : factor;
    }
    if (inversions % 2 == 1) term = -term;
    sum = sum.defined() ? sum + term : term;
  } while (std::next_permutation(permutation.begin(), permutation.end()));
  return Buffers{ctx.compute("det", std::move(axes), std::move(sum))};
}

}  // namespace

std::span<const OpEntry> sample_operators() {
  static const OpEntry kEntries[] = {
      {"Det", "f:T", emit_det},
      {"GridSample", "f:TF", emit_grid_sample},
      {"MaxUnpool", "f:TLl", emit_max_unpool},
      {"RoiAlign", "f:TTL", emit_roi_align},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
