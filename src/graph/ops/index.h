// Index maps shared by the operators.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/ops/op_context.h"

namespace tensorsmith::graph {

using Exprs = std::vector<ir::Expr>;

// One axis a dimension: "i0", "i1", ... (or prefix instead of "i").
std::vector<ir::Axis> axes_for(const Shape& shape, const std::string& prefix = "i");
Exprs vars_of(std::span<const ir::Axis> axes);

// A reduction axis is only made for extents other than 1; the index is its variable or 0.
ir::Expr add_reduce_axis(std::vector<ir::Axis>& axes, const std::string& name, int64_t extent);

// NumPy broadcasting; nullopt if the shapes do not fit.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);
// buffer at an index of a shape that it broadcasts to.
ir::Expr broadcast_read(const ir::Buffer& buffer, std::span<const ir::Expr> indices);
// Input i at such an index; a one-element constant becomes an immediate.
ir::Expr operand(const OpContext& ctx, size_t i, std::span<const ir::Expr> indices);
ir::Expr scalar_imm(ir::DType dtype, const ir::Scalar& value);

// out[indices] = f(in[indices])
ir::Buffer map_elements(OpContext& ctx, const std::string& name, const ir::Buffer& in,
                        const std::function<ir::Expr(ir::Expr)>& f);

// Indices into a row-major tensor of shape from that hold the element at indices of a tensor of shape to
// (same number of elements). Dimensions that only get inserted, removed, split or merged give affine indices
// or plain floordiv/floormod of one variable.
Exprs reshape_indices(const Shape& from, const Shape& to, std::span<const ir::Expr> indices);
// The buffer under another shape of as many elements; the buffer itself if the shape is the same.
ir::Buffer reshape(OpContext& ctx, const std::string& name, const ir::Buffer& buffer, const Shape& shape);

ir::Expr linear_index(const Shape& shape, std::span<const ir::Expr> indices);

// a op b of data, wrapped at the dtype's width: kI64 is for indices, whose sums and products the simplifiers
// take not to overflow (ir/expr.h), so 64-bit data goes through kU64. op: kAdd, kSub or kMul.
ir::Expr wrapping(ir::BinaryOp op, const ir::Expr& a, const ir::Expr& b);
// -x, wrapped likewise.
ir::Expr negated(const ir::Expr& x);

// A negative index counts from the end; the result is clamped to [0, extent), so that a wrong index at run
// time cannot read out of range. index: any integer dtype; result kI64.
ir::Expr wrap_index(const ir::Expr& index, int64_t extent);

}  // namespace tensorsmith::graph
