// Parallel loops: the body becomes a function of its own, what it needs goes through a closure.
#include <unordered_set>

#include "codegen/llvm/emitter.h"
#include "ir/analysis.h"

namespace tensorsmith::codegen {

using llvm::Value;

void Emitter::emit_parallel(const ir::For& loop, int64_t extent) {
  // What the body uses.
  std::unordered_set<const ir::VarNode*> used_vars;
  std::vector<ir::Var> vars;        // in order of first use, for a deterministic closure
  std::vector<ir::Buffer> buffers;  // likewise
  std::unordered_set<const ir::BufferNode*> used_buffers;
  const auto use_buffer = [&](const ir::Buffer& buffer) {
    if (f_.buffers.contains(buffer.get()) && used_buffers.insert(buffer.get()).second)
      buffers.push_back(buffer);
  };
  const auto use_expr = [&](const ir::Expr& e) {
    ir::for_each_expr(e, [&](const ir::Expr& x) {
      if (const auto* ref = ir::as<ir::VarRef>(x))
        if (f_.vars.contains(ref->var.get()) && used_vars.insert(ref->var.get()).second)
          vars.push_back(ref->var);
      if (const auto* l = ir::as<ir::Load>(x)) use_buffer(l->buffer);
    });
  };
  ir::for_each_stmt(loop.body, [&](const ir::Stmt& s) {
    ir::visit(ir::overloaded{[&](const ir::For& inner) { use_expr(inner.extent); },
                             [&](const ir::Store& st) {
                               use_buffer(st.buffer);
                               for (const ir::Expr& i : st.indices) use_expr(i);
                               use_expr(st.value);
                             },
                             [&](const ir::IfThenElse& branch) { use_expr(branch.condition); },
                             [&](const ir::Seq&) {}, [&](const ir::Allocate&) {}},
              s);
  });

  // Closure: 8-byte slots. 0: this call's thread workspace, 1: its stride, then buffers, then variables.
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Type* i64 = b_.getInt64Ty();
  std::vector<Value*> slots;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(f_.scopes.front().insert_before);
    slots.push_back(load_field(f_.context, 32, pointer, 64));
    slots.push_back(load_field(f_.context, 40, i64, 0));
  }
  for (const ir::Buffer& buffer : buffers) slots.push_back(info_of(buffer).base);
  std::vector<std::pair<ir::Var, ir::Interval>> captured;
  for (const ir::Var& var : vars) {
    const Affine& value = f_.vars.at(var.get());
    if (value.is_constant()) continue;
    captured.emplace_back(var, range_of(value));
    slots.push_back(uniform_sum(value));
  }
  llvm::AllocaInst* closure = nullptr;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(f_.alloca_point);
    closure = b_.CreateAlloca(llvm::ArrayType::get(i64, slots.size()), nullptr, "closure");
  }
  for (size_t s = 0; s < slots.size(); ++s)
    b_.CreateStore(slots[s], b_.CreateGEP(b_.getInt8Ty(), closure, b_.getInt64(8 * s)));

  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, i64, i64, b_.getInt32Ty()}, false);
  auto* body =
      llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                             options_.symbol + ".parallel." + std::to_string(parallel_bodies_++), module_);
  // The call, in the kernel.
  loaded_ = {};
  Value* run = load_field(f_.context, 0, pointer, 0);
  Value* pool = load_field(f_.context, 8, pointer, 0);
  b_.CreateCall(llvm::FunctionType::get(b_.getVoidTy(), {pointer, i64, pointer, pointer}, false), run,
                {pool, b_.getInt64(static_cast<uint64_t>(extent)), body, closure});

  // The body, in a function of its own.
  FunctionState outer;
  std::swap(outer, f_);
  const llvm::IRBuilderBase::InsertPoint resume = b_.saveIP();
  begin_function(body);
  f_.in_parallel = true;
  Value* environment = body->getArg(0);
  size_t slot = 2;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(f_.scopes.front().insert_before);
    Value* workspace = load_field(environment, 0, pointer, 64);
    Value* stride = load_field(environment, 8, i64, 0);
    Value* thread = b_.CreateSExt(body->getArg(3), i64);
    f_.thread_workspace = b_.CreateGEP(b_.getInt8Ty(), workspace, b_.CreateMul(thread, stride));
    for (const ir::Buffer& buffer : buffers) {
      BufferInfo info = outer.buffers.at(buffer.get());
      info.base = load_field(environment, static_cast<int64_t>(8 * slot++), pointer, 64);
      f_.buffers[buffer.get()] = info;
    }
    for (const auto& [node, value] : outer.vars)
      if (value.is_constant()) f_.vars[node] = value;
    for (const auto& [var, range] : captured)
      f_.vars[var.get()] =
          affine_of(new_atom(load_field(environment, static_cast<int64_t>(8 * slot++), i64, 0), 0, range));
  }
  emit_exact_if_nan(parts_.range(loop), [&] {
    emit_loop(loop.var, body->getArg(1), body->getArg(2), {0, extent - 1}, false,
              [&](const Affine&) { emit(loop.body); });
  });
  end_function();
  std::swap(outer, f_);
  b_.restoreIP(resume);
}

}  // namespace tensorsmith::codegen
