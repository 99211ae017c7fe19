// Addresses of loads: index sums with as few instructions as the levels allow, and range checks
// where a sum may leave the range.
#include <algorithm>

#include "lower/bytecode.h"

namespace tensorsmith::lower {

using ir::DType;

ExprCompiler::Value ExprCompiler::compile_load(const ir::Load& e, DType dtype) {
  const auto found = buffers_.find(e.buffer.get());
  TS_CHECK(found != buffers_.end(), "load of unbound buffer '" + e.buffer->name + "'");
  const BufferInfo& buffer = found->second;
  Instruction i{};
  i.op = Opcode::kLoad;
  i.dtype = dtype;
  i.uniform = UniformId(0);
  const Value flat = address(e, &i.uniform);
  i.a = flat.reg;
  i.slot = buffer.slot;
  i.c = mask_;
  const bool fixed = hoist_loads_ && !mask_.valid() && i.uniform == UniformId(0);
  const LevelId level = fixed ? flat.level : innermost();
  if (buffer.tracked) {
    Instruction check = i;
    check.op = Opcode::kCheckWritten;
    check.site = code_.sites.push_back({&e, std::nullopt});
    levels_[level].stream->push_back(check);
  }
  return emit(i, level);
}

ExprCompiler::Value ExprCompiler::address(const ir::Load& e, UniformId* uniform) {
  const BufferInfo& buffer = buffers_.find(e.buffer.get())->second;
  Linear flat;
  for (size_t d = 0; d < e.indices.size(); ++d) {
    Linear index;
    linearize(e.indices[d], 1, index);
    if (!in_range(index, e.buffer->shape[d])) {
      const Value v = linear_value(index);
      Instruction check{};
      check.op = Opcode::kCheckIndex;
      check.a = v.reg;
      check.c = mask_;
      check.site = code_.sites.push_back({&e, d});
      check.imm = e.buffer->shape[d];
      levels_[hoist_loads_ && !mask_.valid() ? v.level : innermost()].stream->push_back(check);
    }
    const int64_t stride = buffer.strides[d];
    flat.constant = wrapping_add(flat.constant, wrapping_mul(index.constant, stride));
    for (const auto& [v, c] : index.terms) flat.terms.emplace_back(v, wrapping_mul(c, stride));
    for (const auto& [v, c] : index.variables) flat.variables.emplace_back(v, wrapping_mul(c, stride));
  }
  if (uniform != nullptr) {
    UniformOffset offset;
    std::erase_if(flat.variables, [&](const auto& term) {
      const VarInfo& info = vars_.at(term.first);
      if (!info.counter) return false;
      offset.terms.push_back({*info.counter, term.second});
      return true;
    });
    if (!offset.terms.empty()) *uniform = code_.uniform.push_back(std::move(offset));
  }
  return linear_value(flat);
}

void ExprCompiler::linearize(const ir::Expr& e, int64_t scale, Linear& out) {
  if (e.dtype() == DType::kI64) {
    if (const auto value = ir::as_int(e)) {
      out.constant = wrapping_add(out.constant, wrapping_mul(scale, *value));
      return;
    }
    if (const auto* ref = ir::as<ir::VarRef>(e)) {
      const ir::VarNode* var = ref->var.get();
      TS_CHECK(vars_.contains(var), "unbound variable '" + var->name + "'");
      for (auto& [v, c] : out.variables) {
        if (v == var) {
          c = wrapping_add(c, scale);
          return;
        }
      }
      out.variables.emplace_back(var, scale);
      return;
    }
    if (const auto* x = ir::as<ir::Binary>(e)) {
      if (x->op == ir::BinaryOp::kAdd || x->op == ir::BinaryOp::kSub) {
        linearize(x->a, scale, out);
        linearize(x->b, x->op == ir::BinaryOp::kAdd ? scale : wrapping_mul(scale, -1), out);
        return;
      }
      if (x->op == ir::BinaryOp::kMul) {
        if (const auto factor = ir::as_int(x->b)) {
          linearize(x->a, wrapping_mul(scale, *factor), out);
          return;
        }
        if (const auto factor = ir::as_int(x->a)) {
          linearize(x->b, wrapping_mul(scale, *factor), out);
          return;
        }
      }
    }
  }
  const Value v = compile_value(e);
  out.terms.emplace_back(v, scale);
}

bool ExprCompiler::in_range(const Linear& linear, int64_t extent) const {
  if (!linear.terms.empty()) return false;
  int64_t low = linear.constant;
  int64_t high = linear.constant;
  for (const auto& [var, c] : linear.variables) {
    const int64_t n = vars_.at(var).extent;
    int64_t reach = 0;
    int64_t& end = c > 0 ? high : low;
    if (n < 0 || __builtin_mul_overflow(c, std::max<int64_t>(n, 1) - 1, &reach) ||
        __builtin_add_overflow(end, reach, &end)) {
      return false;
    }
  }
  return low >= 0 && high < extent;
}

// Emits one instruction per level, from the outermost: each adds its level's terms to the outer
// sum.
ExprCompiler::Value ExprCompiler::linear_value(const Linear& linear) {
  std::vector<std::pair<Value, int64_t>> terms = linear.terms;
  for (const auto& [var, c] : linear.variables) {
    if (c != 0) terms.emplace_back(variable(var), c);
  }
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto& a, const auto& b) { return a.first.level < b.first.level; });
  if (terms.empty()) return constant(ir::scalar_int(DType::kI64, linear.constant));
  if (terms.size() == 1 && terms[0].second == 1 && linear.constant == 0) return terms[0].first;
  Value sum;
  int64_t imm = linear.constant;
  for (size_t begin = 0; begin < terms.size();) {
    size_t end = begin;
    Instruction i{};
    i.op = Opcode::kLinear;
    i.imm = imm;
    LinearSum part;
    const LevelId level = terms[begin].first.level;
    if (sum.reg.valid()) part.terms.push_back({sum.reg, 1});
    for (; end < terms.size() && terms[end].first.level == level; ++end) {
      part.terms.push_back({terms[end].first.reg, terms[end].second});
    }
    i.sum = code_.sums.push_back(std::move(part));
    sum = emit(i, level);
    imm = 0;
    begin = end;
  }
  return sum;
}

}  // namespace tensorsmith::lower
