#include "graph/ops/index.h"

#include <algorithm>

#include "ir/scalar.h"

namespace tensorsmith::graph {

using ir::Expr;

std::vector<ir::Axis> axes_for(const Shape& shape, const std::string& prefix) {
  std::vector<ir::Axis> axes;
  axes.reserve(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    axes.push_back({ir::Var(prefix + std::to_string(i)), shape[i]});
  }
  return axes;
}

Exprs vars_of(std::span<const ir::Axis> axes) {
  Exprs vars;
  vars.reserve(axes.size());
  for (const ir::Axis& axis : axes) vars.push_back(axis.var);
  return vars;
}

Expr add_reduce_axis(std::vector<ir::Axis>& axes, const std::string& name, int64_t extent) {
  if (extent == 1) return 0;
  axes.push_back({ir::Var(name), extent});
  return axes.back().var;
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t k = 0; k < result.size(); ++k) {  // from the back
    const int64_t x = k < a.size() ? a[a.size() - 1 - k] : 1;
    const int64_t y = k < b.size() ? b[b.size() - 1 - k] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - 1 - k] = x == 1 ? y : x;
  }
  return result;
}

Expr broadcast_read(const ir::Buffer& buffer, std::span<const Expr> indices) {
  const Shape& shape = buffer->shape;
  TS_CHECK(shape.size() <= indices.size(), "broadcast_read: the buffer has more dimensions than indices");
  Exprs own;
  own.reserve(shape.size());
  for (size_t k = 0; k < shape.size(); ++k) {
    own.push_back(shape[k] == 1 ? Expr(0) : indices[indices.size() - shape.size() + k]);
  }
  return ir::load(buffer, std::move(own));
}

Expr scalar_imm(ir::DType dtype, const ir::Scalar& value) {
  const ir::Scalar cast = ir::eval_cast(dtype, value);
  return ir::is_float(dtype) ? ir::float_imm(dtype, cast.f) : ir::int_imm(dtype, cast.i);
}

Expr operand(const OpContext& ctx, size_t i, std::span<const Expr> indices) {
  const lower::Tensor* constant = ctx.constant(i);
  if (constant != nullptr && constant->num_elements() == 1) return scalar_imm(ctx.dtype(i), constant->at(0));
  return broadcast_read(ctx.in(i), indices);
}

ir::Buffer map_elements(OpContext& ctx, const std::string& name, const ir::Buffer& in,
                        const std::function<Expr(Expr)>& f) {
  std::vector<ir::Axis> axes = axes_for(in->shape);
  Expr body = f(ir::load(in, vars_of(axes)));
  return ctx.compute(name, std::move(axes), std::move(body));
}

Expr linear_index(const Shape& shape, std::span<const Expr> indices) {
  Expr linear = 0;
  for (size_t k = 0; k < shape.size(); ++k) {
    linear = shape[k] == 1 ? linear : linear * Expr(shape[k]) + indices[k];
  }
  return linear;
}

namespace {

// Appends the row-major digits of a linear index; the first digit needs no modulo because the index
// is in range.
void append_digits(const Expr& linear, std::span<const int64_t> extents, Exprs& digits) {
  int64_t stride = product(extents);
  const int64_t total = stride;
  for (size_t k = 0; k < extents.size(); ++k) {
    const int64_t enclosing = stride;
    stride = extents[k] == 0 ? 0 : stride / extents[k];
    if (total == 0 || extents[k] == 1) {
      digits.push_back(0);
      continue;
    }
    Expr digit = enclosing == total ? linear : ir::floormod(linear, enclosing);
    digits.push_back(stride == 1 ? digit : ir::floordiv(digit, stride));
  }
}

}  // namespace

Exprs reshape_indices(const Shape& from, const Shape& to, std::span<const Expr> indices) {
  Exprs result;
  result.reserve(from.size());
  if (product(from) == 0) {
    result.assign(from.size(), Expr(0));
    return result;
  }
  // Traverses both shapes and closes a group whenever the products are equal. Within a group, the
  // index is linearized and split again; groups are independent of each other.
  size_t i = 0;
  size_t j = 0;
  while (i < from.size() || j < to.size()) {
    if (i < from.size() && from[i] == 1) {
      result.push_back(0);
      ++i;
      continue;
    }
    if (j < to.size() && to[j] == 1) {
      ++j;
      continue;
    }
    const size_t first_i = i;
    const size_t first_j = j;
    int64_t product_from = from[i++];
    int64_t product_to = to[j++];
    while (product_from != product_to) {
      if (product_from < product_to) {
        product_from *= from[i++];
      } else {
        product_to *= to[j++];
      }
    }
    const Shape group_to(to.begin() + first_j, to.begin() + j);
    const Expr linear = linear_index(group_to, indices.subspan(first_j, j - first_j));
    append_digits(linear, std::span(from).subspan(first_i, i - first_i), result);
  }
  return result;
}

ir::Buffer reshape(OpContext& ctx, const std::string& name, const ir::Buffer& buffer, const Shape& shape) {
  if (shape == buffer->shape) return buffer;
  std::vector<ir::Axis> axes = axes_for(shape);
  Expr body = ir::load(buffer, reshape_indices(buffer->shape, shape, vars_of(axes)));
  return ctx.compute(name, std::move(axes), std::move(body));
}

Expr wrapping(ir::BinaryOp op, const Expr& a, const Expr& b) {
  if (a.dtype() != ir::DType::kI64) return ir::binary(op, a, b);
  const auto bits = [](const Expr& e) { return ir::cast(ir::DType::kU64, e); };
  return ir::cast(ir::DType::kI64, ir::binary(op, bits(a), bits(b)));
}

Expr negated(const Expr& x) {
  return x.dtype() == ir::DType::kI64 ? wrapping(ir::BinaryOp::kSub, Expr(0), x) : -x;
}

Expr wrap_index(const Expr& index, int64_t extent) {
  if (extent <= 1) return Expr(0);  // the index does not matter, since nothing reads the value
  if (const auto known = ir::as_int(index)) {
    return std::clamp<int64_t>(*known < 0 ? *known + extent : *known, 0, std::max<int64_t>(extent - 1, 0));
  }
  const Expr wide = index.dtype() == ir::DType::kI64 ? index : ir::cast(ir::DType::kI64, index);
  return ir::min(ir::max(ir::select(wide < 0, wide + extent, wide), 0), std::max<int64_t>(extent - 1, 0));
}

}  // namespace tensorsmith::graph
