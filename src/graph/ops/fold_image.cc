// Col2Im, CenterCropPad, AffineGrid, TensorScatter: data placed at positions that constants
// determine.
#include <algorithm>
#include <numeric>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Combiner;
using ir::DType;
using ir::Expr;

// Adds columns of blocks (N, C * block, blocks) up in images (N, C, image): the transpose of
// im2col.
Result<Buffers> emit_col2im(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  TS_ASSIGN_OR_RETURN(const std::vector<int64_t> image, ctx.constant_ints(1, "image_shape"));
  TS_ASSIGN_OR_RETURN(const std::vector<int64_t> block, ctx.constant_ints(2, "block_shape"));
  const size_t rank = image.size();
  if (x.size() != 3 || rank == 0 || rank > kMaxRank - 2 || block.size() != rank)
    return ctx.invalid("data " + describe(ctx.dtype(0), x) + ", image_shape and block_shape do not fit");
  const std::vector<int64_t> dilations = ctx.geometry_attr("dilations", rank, 1);
  const std::vector<int64_t> strides = ctx.geometry_attr("strides", rank, 1);
  const std::vector<int64_t> pads = ctx.geometry_attr("pads", 2 * rank, 0);
  if (ctx.error()) return *ctx.error();
  Shape counts;
  double total = 1;
  for (size_t d = 0; d < rank; ++d) {
    if (image[d] < 1 || block[d] < 1 || image[d] > kMaxGeometry || block[d] > kMaxGeometry ||
        dilations[d] < 1 || strides[d] < 1 || pads[d] < 0 || pads[d + rank] < 0)
      return ctx.invalid("shapes, strides or dilations of dimension " + std::to_string(d) +
                         " are out of range");
    const int64_t room = image[d] + pads[d] + pads[d + rank] - dilations[d] * (block[d] - 1) - 1;
    if (room < 0) return ctx.invalid("a block is larger than the padded image");
    counts.push_back(room / strides[d] + 1);
    total = total * counts.back() * block[d];
  }
  if (total > kMaxElements || !is_reasonable(image)) return ctx.invalid("the image is too large");
  const int64_t taps = product(block);
  if (x[1] % taps != 0 || x[2] != product(counts))
    return ctx.invalid("data " + describe(ctx.dtype(0), x) + " does not have " +
                       std::to_string(product(counts)) + " columns of blocks of " + std::to_string(taps));
  Shape shape = {x[0], x[1] / taps};
  shape.insert(shape.end(), image.begin(), image.end());
  std::vector<ir::Axis> axes = axes_for(shape);
  std::vector<ir::Axis> reduce;
  Exprs taps_at, blocks_at;
  Expr inside = ir::bool_imm(true);
  for (size_t d = 0; d < rank; ++d) {
    const Expr tap = add_reduce_axis(reduce, "k" + std::to_string(d), block[d]);
    // The block that has this pixel at that tap, if the distance is a multiple of the stride.
    const Expr place = Expr(axes[d + 2].var) + Expr(pads[d]) - tap * Expr(dilations[d]);
    const Expr number = ir::floordiv(place, Expr(strides[d]));
    inside = inside && place >= 0 && number < Expr(counts[d]);
    if (strides[d] > 1) inside = inside && ir::floormod(place, Expr(strides[d])) == 0;
    taps_at.push_back(tap);
    blocks_at.push_back(ir::min(ir::max(number, 0), counts[d] - 1));
  }
  const Expr row = Expr(axes[1].var) * Expr(taps) + linear_index(block, taps_at);
  Expr body = ir::select(inside, ir::load(ctx.in(0), {axes[0].var, row, linear_index(counts, blocks_at)}),
                         ir::make_const(ctx.dtype(0), 0));
  const Combiner combiner = reduce.empty() ? Combiner::kNone : Combiner::kSum;
  return Buffers{ctx.reduce("col2im", std::move(axes), std::move(reduce), combiner, std::move(body))};
}

// Crops the data to its centre, or pads it with zeros on both sides.
Result<Buffers> emit_center_crop_pad(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  TS_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, ctx.constant_ints(1, "shape"));
  std::vector<size_t> dims(x.size());
  std::iota(dims.begin(), dims.end(), size_t{0});
  if (const auto attr = ctx.ints_attr("axes")) {
    TS_ASSIGN_OR_RETURN(dims, ctx.normalize_axes(*attr, x.size()));
  }
  if (sizes.size() != dims.size()) return ctx.invalid("there must be one size per axis");
  Shape shape = x;
  for (size_t k = 0; k < dims.size(); ++k) shape[dims[k]] = sizes[k];
  if (!is_reasonable(shape)) return ctx.invalid("the result would be too large");
  std::vector<ir::Axis> axes = axes_for(shape);
  Exprs at = vars_of(axes);
  Expr inside = ir::bool_imm(true);
  for (size_t d = 0; d < x.size(); ++d) {
    if (shape[d] <= x[d]) {
      at[d] = at[d] + Expr((x[d] - shape[d]) / 2);
      continue;
    }
    at[d] = at[d] - Expr((shape[d] - x[d]) / 2);
    inside = inside && at[d] >= 0 && at[d] < Expr(x[d]);
  }
  Expr body = ir::load(ctx.in(0), at);
  if (product(x) == 0) {
    body = ir::make_const(ctx.dtype(0), 0);
  } else {
    body = ir::select(inside, body, ir::make_const(ctx.dtype(0), 0));
  }
  return Buffers{ctx.compute("center_crop_pad", std::move(axes), std::move(body))};
}

// grid[n, y, x] = theta[n] * (x, y, 1), with coordinates from -1 to 1.
Result<Buffers> emit_affine_grid(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const std::vector<int64_t> size, ctx.constant_ints(1, "size"));
  if ((size.size() != 4 && size.size() != 5) || !is_reasonable(size))
    return ctx.invalid("input 1 (size) must be (N, C, H, W) or (N, C, D, H, W)");
  const auto dims = std::ssize(size) - 2;
  if (ctx.shape(0) != Shape{size[0], dims, dims + 1})
    return ctx.invalid("theta is " + describe(ctx.dtype(0), ctx.shape(0)) + " instead of " +
                       describe(ctx.dtype(0), {size[0], dims, dims + 1}));
  const bool corners = ctx.int_attr("align_corners", 0) != 0;
  Shape shape = {size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(dims);
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs vars = vars_of(axes);
  const DType dtype = ctx.dtype(0);
  const auto f = [&](double v) { return ir::make_const(dtype, v); };
  Expr sum = ir::load(ctx.in(0), {vars[0], vars.back(), Expr(dims)});
  for (int64_t d = dims; d-- > 0;) {
    // Coordinates are counted from the last dimension, which is x.
    const int64_t at = dims - d;
    const double extent = shape[at];
    const Expr place = ir::cast(dtype, vars[at]);
    const Expr coordinate = !corners         ? (place * f(2) + f(1)) / f(extent) - f(1)
                            : shape[at] == 1 ? f(-1)
                                             : place * f(2) / f(extent - 1) - f(1);
    sum = sum + ir::load(ctx.in(0), {vars[0], vars.back(), Expr(d)}) * coordinate;
  }
  return Buffers{ctx.compute("affine_grid", std::move(axes), std::move(sum))};
}

// Writes rows of each batch from write_indices on; `circular` wraps around to the front.
Result<Buffers> emit_tensor_scatter(OpContext& ctx) {
  const Shape& cache = ctx.shape(0);
  const Shape& update = ctx.shape(1);
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", -2), cache.size()));
  const std::string mode = ctx.string_attr("mode", "linear");
  if (mode != "linear" && mode != "circular") return ctx.invalid("unknown mode '" + mode + "'");
  if (axis == 0 || update.size() != cache.size() || update[axis] > cache[axis])
    return ctx.invalid("cache " + describe(ctx.dtype(0), cache) + " and update " +
                       describe(ctx.dtype(1), update) + " do not fit");
  for (size_t d = 0; d < cache.size(); ++d)
    if (d != axis && cache[d] != update[d])
      return ctx.invalid("cache and update differ in a dimension other than the axis");
  if (ctx.has(2) && ctx.shape(2) != Shape{cache[0]})
    return ctx.invalid("there must be one write index per batch");
  if (update[axis] == 0) return Buffers{ctx.in(0)};
  std::vector<ir::Axis> axes = axes_for(cache);
  const Exprs vars = vars_of(axes);
  const Expr begin = ctx.has(2) ? ir::load(ctx.in(2), {vars[0]}) : Expr(0);
  Expr place = vars[axis] - begin;
  if (mode == "circular") place = ir::floormod(place, Expr(cache[axis]));
  const Expr written = place >= 0 && place < Expr(update[axis]);
  Exprs at = vars;
  at[axis] = ir::min(ir::max(place, 0), update[axis] - 1);
  Expr body = ir::select(written, ir::load(ctx.in(1), at), ir::load(ctx.in(0), vars));
  return Buffers{ctx.compute("tensor_scatter", std::move(axes), std::move(body))};
}

}  // namespace

std::span<const OpEntry> fold_image_operators() {
  static const OpEntry kEntries[] = {
      {"AffineGrid", "f:TL", emit_affine_grid},
      {"CenterCropPad", "a:TI", emit_center_crop_pad},
      {"Col2Im", "n:TLL", emit_col2im},
      {"TensorScatter", "a:TTl", emit_tensor_scatter},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
