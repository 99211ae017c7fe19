// Index maps shared by the operators.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/ops/op_context.h"

namespace tensorsmith::graph {

using Exprs = std::vector<ir::Expr>;

// Loops over at most so many elements for each element of the result are left to the emitters: such a kernel takes part
// in fusion, which a routine does not.
inline constexpr int64_t kShortLoop = 8;

// Makes one axis per dimension: "i0", "i1", ... (or with `prefix` instead of "i").
std::vector<ir::Axis> axes_for(const Shape& shape, const std::string& prefix = "i");
Exprs vars_of(std::span<const ir::Axis> axes);

// Adds a reduction axis only for extents other than 1; returns its variable or 0.
ir::Expr add_reduce_axis(std::vector<ir::Axis>& axes, const std::string& name, int64_t extent);

// NumPy broadcasting; returns nullopt if the shapes are incompatible.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);
// Reads a buffer at an index of a shape that it broadcasts to.
ir::Expr broadcast_read(const ir::Buffer& buffer, std::span<const ir::Expr> indices);
// Reads input i at such an index; a one-element constant becomes an immediate.
ir::Expr operand(const OpContext& ctx, size_t i, std::span<const ir::Expr> indices);
ir::Expr scalar_imm(ir::DType dtype, const ir::Scalar& value);

// out[indices] = f(in[indices])
ir::Buffer map_elements(OpContext& ctx, const std::string& name, const ir::Buffer& in,
                        const std::function<ir::Expr(ir::Expr)>& f);

// Returns the indices into a row-major tensor of shape `from` that hold the element at `indices` of
// a tensor of shape `to` (same number of elements). Dimensions that are only inserted, removed,
// split or merged give affine indices or plain floordiv/floormod of one variable.
Exprs reshape_indices(const Shape& from, const Shape& to, std::span<const ir::Expr> indices);
// Returns the buffer reshaped to a shape with as many elements; the buffer itself if the shape is
// the same.
ir::Buffer reshape(OpContext& ctx, const std::string& name, const ir::Buffer& buffer, const Shape& shape);

ir::Expr linear_index(const Shape& shape, std::span<const ir::Expr> indices);

// Returns a op b of data, wrapped at the dtype's width. Simplifiers assume that kI64 sums and
// products, which are index arithmetic, do not overflow (ir/expr.h), so 64-bit data is computed as
// kU64. op: kAdd, kSub or kMul.
ir::Expr wrapping(ir::BinaryOp op, const ir::Expr& a, const ir::Expr& b);
// Returns -x, wrapped in the same way.
ir::Expr negated(const ir::Expr& x);

// A negative index counts from the end. The result is clamped to [0, extent), so that an invalid
// index at run time cannot read out of range. `index` has any integer dtype; the result is kI64.
ir::Expr wrap_index(const ir::Expr& index, int64_t extent);

}  // namespace tensorsmith::graph
