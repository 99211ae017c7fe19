// MatMulNBits (com.microsoft): a product with weights of 2, 4 or 8 bits, in blocks with one scale
// each.
#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::DType;
using ir::Expr;

// Extracts element `place` of a packed byte; the first is in the lowest bits.
Expr unpack(const Expr& byte, const Expr& place, int64_t bits) {
  const Expr wide = ir::cast(DType::kI32, byte);
  if (bits == 8) return wide;
  const int64_t per_byte = 8 / bits;
  const Expr shift = ir::cast(DType::kI32, ir::floormod(place, Expr(per_byte)) * Expr(bits));
  return ir::binary(ir::BinaryOp::kBitAnd, ir::binary(ir::BinaryOp::kShr, wide, shift),
                    ir::int_imm(DType::kI32, (1 << bits) - 1));
}

// Y[.., n] = sum_k A[.., k] * (B[n, k] - zero[n, k / block]) * scale[n, k / block] + bias[n]. The
// weights are read in their packed form (N, blocks, bytes of a block) and unpacked inside the
// product.
Result<Buffers> emit_matmul_nbits(OpContext& ctx) {
  const int64_t depth = ctx.int_attr("K", 0), columns = ctx.int_attr("N", 0);
  const int64_t bits = ctx.int_attr("bits", 4), block = ctx.int_attr("block_size", 0);
  if (ctx.error()) return *ctx.error();
  if (bits != 2 && bits != 4 && bits != 8)
    return ctx.unsupported("weights of " + std::to_string(bits) + " bits");
  if (block < 16 || block > kMaxGeometry || (block & (block - 1)) != 0)
    return ctx.invalid("block_size must be a power of two of at least 16");
  if (depth < 1 || columns < 1 || depth > kMaxGeometry || columns > kMaxGeometry)
    return ctx.invalid("attributes K and N must be positive");
  if (ctx.has(4)) return ctx.unsupported("input 4 (g_idx)");
  const int64_t per_byte = 8 / bits;
  const int64_t blocks = (depth + block - 1) / block;
  const int64_t bytes = block / per_byte;
  const Shape& a = ctx.shape(0);
  if (a.empty() || a.back() != depth)
    return ctx.invalid("A is " + describe(ctx.dtype(0), a) + ", K is " + std::to_string(depth));
  if (ctx.dtype(1) != DType::kU8 || product(ctx.shape(1)) != columns * blocks * bytes)
    return ctx.invalid("B is " + describe(ctx.dtype(1), ctx.shape(1)) + " instead of " +
                       describe(DType::kU8, {columns, blocks, bytes}));
  if (product(ctx.shape(2)) != columns * blocks)
    return ctx.invalid("there must be one scale per block: " + describe(ctx.dtype(2), {columns, blocks}));
  const bool packed_zeros = ctx.has(3) && ctx.dtype(3) == DType::kU8;
  const int64_t zero_bytes = (blocks + per_byte - 1) / per_byte;
  if (ctx.has(3)) {
    if (!packed_zeros && ctx.dtype(3) != ctx.dtype(0))
      return ctx.unsupported("zero points that have neither dtype u8 nor that of A");
    if (product(ctx.shape(3)) != columns * (packed_zeros ? zero_bytes : blocks))
      return ctx.invalid("the zero points are " + describe(ctx.dtype(3), ctx.shape(3)));
  }
  if (ctx.has(5) && ctx.shape(5) != Shape{columns})
    return ctx.invalid("the bias must have one value per column");

  Shape shape = a;
  shape.back() = columns;
  std::vector<ir::Axis> axes = axes_for(shape);
  Exprs row = vars_of(axes);
  const Expr n = row.back();
  std::vector<ir::Axis> reduce;
  const Expr outer = add_reduce_axis(reduce, "b", blocks);
  const Expr inner = add_reduce_axis(reduce, "k", block);
  const Expr k = outer * Expr(block) + inner;
  const auto read = [&](size_t i, const Shape& as, const Exprs& at) {
    return ir::load(ctx.in(i), reshape_indices(ctx.shape(i), as, at));
  };
  const DType dtype = ctx.dtype(0);
  const Expr byte = read(1, {columns, blocks, bytes}, {n, outer, ir::floordiv(inner, Expr(per_byte))});
  Expr weight = unpack(byte, inner, bits);
  if (ctx.has(3) && !packed_zeros) {
    weight = ir::cast(dtype, weight) - read(3, {columns, blocks}, {n, outer});
  } else {
    const Expr zero =
        packed_zeros
            ? unpack(read(3, {columns, zero_bytes}, {n, ir::floordiv(outer, Expr(per_byte))}), outer, bits)
            : ir::int_imm(DType::kI32, int64_t{1} << (bits - 1));
    weight = ir::cast(dtype, weight - zero);
  }
  weight = weight * read(2, {columns, blocks}, {n, outer});
  const bool ragged = blocks * block != depth;
  row.back() = ragged ? ir::min(k, depth - 1) : k;
  Expr left = ir::load(ctx.in(0), row);
  if (ragged) left = ir::select(k < Expr(depth), left, ir::make_const(dtype, 0));
  const ir::Combiner combiner = reduce.empty() ? ir::Combiner::kNone : ir::Combiner::kSum;
  const ir::Buffer sum = ctx.reduce("matmul_nbits", axes, std::move(reduce), combiner, left * weight);
  if (!ctx.has(5)) return Buffers{sum};
  std::vector<ir::Axis> out = axes_for(shape);
  const Exprs vars = vars_of(out);
  Expr body = ir::load(sum, vars) + ir::load(ctx.in(5), {vars.back()});
  return Buffers{ctx.compute("bias_add", std::move(out), std::move(body))};
}

}  // namespace

std::span<const OpEntry> nbits_operators() {
  static const OpEntry kEntries[] = {{"com.microsoft.MatMulNBits", "f:TATaat", emit_matmul_nbits}};
  return kEntries;
}

}  // namespace tensorsmith::graph
