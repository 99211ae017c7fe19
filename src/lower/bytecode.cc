#include "lower/bytecode.h"

#include <algorithm>
#include <bit>

namespace tensorsmith::lower {

using ir::DType;

RegisterKind register_kind(DType dtype) {
  if (dtype == DType::kF64) return RegisterKind::kF64;
  return ir::is_float(dtype) ? RegisterKind::kF32 : RegisterKind::kInt;
}

namespace {

// Returns whether all values of a are representable in b (integers and bool).
bool fits(DType a, DType b) {
  if (a == b || a == DType::kBool) return true;
  if (b == DType::kBool) return false;
  // A register holds 64 bits in either case.
  if (b == DType::kI64 || b == DType::kU64) return true;
  if (a == DType::kI64 || a == DType::kU64) return false;
  if (ir::is_unsigned_int(a)) {
    return ir::is_unsigned_int(b) ? ir::bits_of(a) <= ir::bits_of(b) : ir::bits_of(a) < ir::bits_of(b);
  }
  return ir::is_signed_int(b) && ir::bits_of(a) <= ir::bits_of(b);
}

// Returns whether the integer operator has a 64-bit opcode, and sets `out` to it.
bool int_opcode(ir::BinaryOp op, DType operands, Opcode& out) {
  const bool u64 = operands == DType::kU64;  // ordered as unsigned
  switch (op) {
    case ir::BinaryOp::kAdd:
      out = Opcode::kAddI;
      return true;
    case ir::BinaryOp::kSub:
      out = Opcode::kSubI;
      return true;
    case ir::BinaryOp::kMul:
      out = Opcode::kMulI;
      return true;
    case ir::BinaryOp::kDiv:
      out = Opcode::kDivI;
      return !u64;
    case ir::BinaryOp::kFloorDiv:
      out = Opcode::kFloorDivI;
      return !u64;
    case ir::BinaryOp::kFloorMod:
      out = Opcode::kFloorModI;
      return !u64;
    case ir::BinaryOp::kMin:
      out = Opcode::kMinI;
      return !u64;
    case ir::BinaryOp::kMax:
      out = Opcode::kMaxI;
      return !u64;
    case ir::BinaryOp::kEq:
      out = Opcode::kEqI;
      return true;
    case ir::BinaryOp::kNe:
      out = Opcode::kNeI;
      return true;
    case ir::BinaryOp::kLt:
      out = Opcode::kLtI;
      return !u64;
    case ir::BinaryOp::kLe:
      out = Opcode::kLeI;
      return !u64;
    case ir::BinaryOp::kGt:
      out = Opcode::kGtI;
      return !u64;
    case ir::BinaryOp::kGe:
      out = Opcode::kGeI;
      return !u64;
    case ir::BinaryOp::kAnd:
    case ir::BinaryOp::kBitAnd:
      out = Opcode::kAndI;
      return true;
    case ir::BinaryOp::kOr:
    case ir::BinaryOp::kBitOr:
      out = Opcode::kOrI;
      return true;
    case ir::BinaryOp::kBitXor:
      out = Opcode::kXorI;
      return true;
    case ir::BinaryOp::kShl:
    case ir::BinaryOp::kShr:
      return false;
  }
  return false;
}

// Finds the kF32 opcode of a float operator; that of kF64 has a constant distance from it.
bool float_opcode(ir::BinaryOp op, DType operands, Opcode& out) {
  const bool f64 = operands == DType::kF64;
  switch (op) {
    case ir::BinaryOp::kAdd:
      out = f64 ? Opcode::kAddF64 : Opcode::kAddF32;
      return true;
    case ir::BinaryOp::kSub:
      out = f64 ? Opcode::kSubF64 : Opcode::kSubF32;
      return true;
    case ir::BinaryOp::kMul:
      out = f64 ? Opcode::kMulF64 : Opcode::kMulF32;
      return true;
    case ir::BinaryOp::kDiv:
      out = f64 ? Opcode::kDivF64 : Opcode::kDivF32;
      return true;
    case ir::BinaryOp::kMin:
      out = f64 ? Opcode::kMinF64 : Opcode::kMinF32;
      return true;
    case ir::BinaryOp::kMax:
      out = f64 ? Opcode::kMaxF64 : Opcode::kMaxF32;
      return true;
    case ir::BinaryOp::kEq:
      out = f64 ? Opcode::kEqF64 : Opcode::kEqF32;
      return true;
    case ir::BinaryOp::kNe:
      out = f64 ? Opcode::kNeF64 : Opcode::kNeF32;
      return true;
    case ir::BinaryOp::kLt:
      out = f64 ? Opcode::kLtF64 : Opcode::kLtF32;
      return true;
    case ir::BinaryOp::kLe:
      out = f64 ? Opcode::kLeF64 : Opcode::kLeF32;
      return true;
    case ir::BinaryOp::kGt:
      out = f64 ? Opcode::kGtF64 : Opcode::kGtF32;
      return true;
    case ir::BinaryOp::kGe:
      out = f64 ? Opcode::kGeF64 : Opcode::kGeF32;
      return true;
    case ir::BinaryOp::kFloorDiv:
    case ir::BinaryOp::kFloorMod:
    case ir::BinaryOp::kAnd:
    case ir::BinaryOp::kOr:
    case ir::BinaryOp::kBitAnd:
    case ir::BinaryOp::kBitOr:
    case ir::BinaryOp::kBitXor:
    case ir::BinaryOp::kShl:
    case ir::BinaryOp::kShr:
      return false;
  }
  return false;
}

}  // namespace

void ExprCompiler::push_level(Stream* stream) { levels_.push_back({stream, {}, {}}); }

void ExprCompiler::pop_level() {
  for (const ir::ExprNode* e : levels_.back().cached) cache_.erase(e);
  for (const ir::VarNode* v : levels_.back().bound) vars_.erase(v);
  levels_.pop_back();
}

RegisterId ExprCompiler::bind_lanes(const ir::Var& var, int64_t extent) {
  const RegisterId reg = new_register();
  vars_[var.get()] = VarInfo{{reg, innermost()}, extent, std::nullopt};
  levels_.back().bound.push_back(var.get());
  return reg;
}

RegisterId ExprCompiler::bind_uniform(const ir::Var& var, int64_t extent, size_t counter) {
  const RegisterId reg = bind_lanes(var, extent);
  vars_[var.get()].counter = counter;
  return reg;
}

void ExprCompiler::bind_buffer(const ir::BufferNode* buffer, BufferInfo info) {
  buffers_[buffer] = std::move(info);
}

RegisterId ExprCompiler::compile(const ir::Expr& e) { return compile_value(e).reg; }

RegisterId ExprCompiler::compile_address(const ir::Load& access) {
  TS_CHECK(buffers_.contains(access.buffer.get()), "access to unbound buffer '" + access.buffer->name + "'");
  return address(access, nullptr).reg;
}

ExprCompiler::Value ExprCompiler::emit(Instruction instruction, LevelId level) {
  instruction.dst = new_register();
  levels_[level].stream->push_back(instruction);
  return {instruction.dst, level};
}

ExprCompiler::Value ExprCompiler::constant(ir::Scalar value) {
  const auto key = std::make_tuple(value.dtype, value.i, std::bit_cast<int64_t>(value.f));
  auto [it, inserted] = constants_.try_emplace(key);
  if (inserted) {
    it->second = {new_register(), LevelId(0)};
    code_.constants.emplace_back(it->second.reg, value);
  }
  return it->second;
}

ExprCompiler::Value ExprCompiler::variable(const ir::VarNode* var) {
  const auto it = vars_.find(var);
  TS_CHECK(it != vars_.end(), "unbound variable '" + var->name + "'");
  used_.insert(it->second.value.reg);
  return it->second.value;
}

ExprCompiler::Value ExprCompiler::wrap(Value v, DType dtype) {
  Instruction i{};
  i.a = v.reg;
  switch (dtype) {
    case DType::kBool:
      i.op = Opcode::kWrapBool;
      break;
    case DType::kI8:
      i.op = Opcode::kWrapI8;
      break;
    case DType::kU8:
      i.op = Opcode::kWrapU8;
      break;
    case DType::kI16:
      i.op = Opcode::kWrapI16;
      break;
    case DType::kU16:
      i.op = Opcode::kWrapU16;
      break;
    case DType::kI32:
      i.op = Opcode::kWrapI32;
      break;
    case DType::kU32:
      i.op = Opcode::kWrapU32;
      break;
    case DType::kF16:
      i.op = Opcode::kRoundF16;
      break;
    case DType::kBF16:
      i.op = Opcode::kRoundBF16;
      break;
    case DType::kI64:
    case DType::kU64:
    case DType::kF32:
    case DType::kF64:
      return v;
  }
  return emit(i, v.level);
}

ExprCompiler::Value ExprCompiler::compile_value(const ir::Expr& e) {
  TS_CHECK(e.defined(), "undefined expression");
  if (const auto it = cache_.find(e.get()); it != cache_.end()) return it->second;
  const Value v = compile_node(e);
  cache_[e.get()] = v;
  levels_[v.level].cached.push_back(e.get());
  return v;
}

ExprCompiler::Value ExprCompiler::compile_node(const ir::Expr& e) {
  return ir::visit(ir::overloaded{
                       [&](const ir::IntImm& x) { return constant(ir::scalar_int(e->dtype, x.value)); },
                       [&](const ir::FloatImm& x) { return constant(ir::scalar_float(e->dtype, x.value)); },
                       [&](const ir::VarRef& x) { return variable(x.var.get()); },
                       [&](const ir::Unary& x) { return compile_unary(x, e->dtype); },
                       [&](const ir::Binary& x) { return compile_binary(x, e->dtype); },
                       [&](const ir::Select& x) { return compile_select(x, e->dtype); },
                       [&](const ir::Cast& x) { return compile_cast(x, e->dtype); },
                       [&](const ir::Call& x) { return compile_call(x, e->dtype); },
                       [&](const ir::Load& x) { return compile_load(x, e->dtype); },
                   },
                   e);
}

ExprCompiler::Value ExprCompiler::compile_unary(const ir::Unary& e, DType dtype) {
  const Value a = compile_value(e.a);
  Instruction i{};
  i.a = a.reg;
  i.unary = e.op;
  i.dtype = i.dtype_a = dtype;
  i.op = Opcode::kUnary;
  if (e.op == ir::UnaryOp::kNot) i.op = Opcode::kNotB;
  if (e.op == ir::UnaryOp::kNeg) {
    switch (register_kind(dtype)) {
      case RegisterKind::kInt:
        i.op = Opcode::kNegI;
        return wrap(emit(i, a.level), dtype);
      case RegisterKind::kF32:
        i.op = Opcode::kNegF32;
        break;
      case RegisterKind::kF64:
        i.op = Opcode::kNegF64;
        break;
    }
  }
  return emit(i, a.level);
}

ExprCompiler::Value ExprCompiler::compile_binary(const ir::Binary& e, DType dtype) {
  const DType operands = e.a.dtype();
  // Index sums become one linear instruction per level.
  if (dtype == DType::kI64 && operands == DType::kI64 &&
      (e.op == ir::BinaryOp::kAdd || e.op == ir::BinaryOp::kSub ||
       (e.op == ir::BinaryOp::kMul && (ir::as_int(e.a) || ir::as_int(e.b))))) {
    Linear linear;
    if (e.op == ir::BinaryOp::kMul) {
      const auto left = ir::as_int(e.a);
      linearize(left ? e.b : e.a, left ? *left : *ir::as_int(e.b), linear);
    } else {
      linearize(e.a, 1, linear);
      linearize(e.b, e.op == ir::BinaryOp::kAdd ? 1 : -1, linear);
    }
    return linear_value(linear);
  }
  const Value a = compile_value(e.a);
  const Value b = compile_value(e.b);
  const LevelId level = std::max(a.level, b.level);
  Instruction i{};
  i.a = a.reg;
  i.b = b.reg;
  i.dtype = dtype;
  i.dtype_a = operands;
  i.binary = e.op;
  if (register_kind(operands) == RegisterKind::kInt) {
    if (!int_opcode(e.op, operands, i.op)) {
      i.op = Opcode::kBinary;
      return emit(i, level);
    }
    const Value v = emit(i, level);
    const bool can_overflow = e.op == ir::BinaryOp::kAdd || e.op == ir::BinaryOp::kSub ||
                              e.op == ir::BinaryOp::kMul || e.op == ir::BinaryOp::kDiv ||
                              e.op == ir::BinaryOp::kFloorDiv;
    return can_overflow ? wrap(v, dtype) : v;
  }
  if (!float_opcode(e.op, operands, i.op)) {
    i.op = Opcode::kBinary;
    return emit(i, level);
  }
  const Value v = emit(i, level);
  return ir::is_float(dtype) ? wrap(v, dtype) : v;
}

ExprCompiler::Value ExprCompiler::compile_cast(const ir::Cast& e, DType dtype) {
  const DType from = e.a.dtype();
  const Value a = compile_value(e.a);
  if (from == dtype) return a;
  Instruction i{};
  i.a = a.reg;
  i.dtype = dtype;
  i.dtype_a = from;
  const RegisterKind source = register_kind(from);
  const RegisterKind target = register_kind(dtype);
  if (source == RegisterKind::kInt && target == RegisterKind::kInt)
    return fits(from, dtype) ? a : wrap(a, dtype);
  if (source == RegisterKind::kInt && dtype == DType::kF32 && from != DType::kU64) {
    i.op = Opcode::kIntToF32;
    return emit(i, a.level);
  }
  if (source == RegisterKind::kInt && dtype == DType::kF64 && from != DType::kU64) {
    i.op = Opcode::kIntToF64;
    return emit(i, a.level);
  }
  if (source == RegisterKind::kF32 && dtype == DType::kF64) {
    i.op = Opcode::kF32ToF64;
    return emit(i, a.level);
  }
  if (source == RegisterKind::kF64 && dtype == DType::kF32) {
    i.op = Opcode::kF64ToF32;
    return emit(i, a.level);
  }
  if (source == RegisterKind::kF32 && target == RegisterKind::kF32) return wrap(a, dtype);
  i.op = Opcode::kCast;
  return emit(i, a.level);
}

ExprCompiler::Value ExprCompiler::compile_call(const ir::Call& e, DType dtype) {
  const Value a = compile_value(e.args[0]);
  Instruction i{};
  i.op = Opcode::kCall;
  i.intrinsic = e.intrinsic;
  i.dtype = dtype;
  i.dtype_a = e.args[0].dtype();
  i.a = a.reg;
  LevelId level = a.level;
  if (e.args.size() > 1) {
    const Value b = compile_value(e.args[1]);
    i.b = b.reg;
    level = std::max(level, b.level);
  }
  return emit(i, level);
}

// Each side is compiled under the mask of the lanes that choose it, so that its loads are checked
// only for those lanes. It is jumped over if there are none.
ExprCompiler::Value ExprCompiler::compile_select(const ir::Select& e, DType dtype) {
  const Value condition = compile_value(e.condition);
  const RegisterId outer_mask = mask_;
  auto side = [&](const ir::Expr& value, Opcode mask_op) {
    Stream& stream = *levels_.back().stream;
    const size_t begin = stream.size();
    auto& cached = levels_.back().cached;
    const size_t cached_before = cached.size();
    Instruction mask{};
    mask.op = mask_op;
    mask.a = outer_mask;
    mask.b = condition.reg;
    mask_ = emit(mask, innermost()).reg;
    Instruction jump{};
    jump.op = Opcode::kJumpIfNone;
    jump.a = mask_;
    const size_t jump_at = stream.size();
    stream.push_back(jump);
    const Value v = compile_value(value);
    if (stream.size() == jump_at + 1) {
      stream.resize(begin);  // this side needs no code
    } else {
      stream[jump_at].target = stream.size();
    }
    for (; cached.size() > cached_before; cached.pop_back()) cache_.erase(cached.back());
    return v;
  };
  const Value a = side(e.a, Opcode::kMaskAnd);
  const Value b = side(e.b, Opcode::kMaskAndNot);
  mask_ = outer_mask;
  Instruction i{};
  switch (register_kind(dtype)) {
    case RegisterKind::kInt:
      i.op = Opcode::kSelectI;
      break;
    case RegisterKind::kF32:
      i.op = Opcode::kSelectF32;
      break;
    case RegisterKind::kF64:
      i.op = Opcode::kSelectF64;
      break;
  }
  i.a = condition.reg;
  i.b = a.reg;
  i.c = b.reg;
  return emit(i, std::max({condition.level, a.level, b.level}));
}

}  // namespace tensorsmith::lower
