// Parallel loops: the body becomes a function of its own, what it needs goes through a closure.
#include <utility>

#include "codegen/captures.h"
#include "codegen/launch.h"
#include "codegen/llvm/emitter.h"

namespace tensorsmith::codegen {

using llvm::Value;

void Emitter::emit_parallel(const ir::For& loop, int64_t extent) {
  const Captures used = captures_of(loop.body);
  std::vector<ir::Buffer> buffers;
  for (const ir::Buffer& buffer : used.buffers)
    if (f_.buffers.contains(buffer.get())) buffers.push_back(buffer);

  // Closure: slots of a pointer's size. This call's thread workspace, its stride, then buffers, then variables.
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Type* i64 = b_.getInt64Ty();
  std::vector<Value*> slots;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(f_.scopes.front().insert_before);
    slots.push_back(load_field(f_.context, ContextOffsets::kThreadWorkspace, pointer, kBufferAlignment));
    slots.push_back(load_field(f_.context, ContextOffsets::kThreadWorkspaceStride, i64, 0));
  }
  for (const ir::Buffer& buffer : buffers) slots.push_back(info_of(buffer).base);
  std::vector<std::pair<ir::Var, ir::Interval>> captured;
  for (const ir::Var& var : used.vars) {
    const auto value = f_.vars.find(var.get());
    if (value == f_.vars.end() || value->second.is_constant()) continue;
    captured.emplace_back(var, range_of(value->second));
    slots.push_back(uniform_sum(value->second));
  }
  llvm::AllocaInst* closure = nullptr;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(f_.alloca_point);
    closure = b_.CreateAlloca(llvm::ArrayType::get(i64, slots.size()), nullptr, "closure");
  }
  for (size_t s = 0; s < slots.size(); ++s)
    b_.CreateStore(slots[s], b_.CreateGEP(b_.getInt8Ty(), closure, b_.getInt64(s * kPointerBytes)));

  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {pointer, i64, i64, b_.getInt32Ty()}, false);
  auto* body =
      llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage,
                             options_.symbol + ".parallel." + std::to_string(parallel_bodies_++), module_);
  // The call, in the kernel.
  loaded_ = {};
  Value* run = load_field(f_.context, ContextOffsets::kParallelFor, pointer, 0);
  Value* pool = load_field(f_.context, ContextOffsets::kPool, pointer, 0);
  b_.CreateCall(llvm::FunctionType::get(b_.getVoidTy(), {pointer, i64, pointer, pointer}, false), run,
                {pool, b_.getInt64(static_cast<uint64_t>(extent)), body, closure});

  // The body, in a function of its own.
  FunctionState outer;
  std::swap(outer, f_);
  const llvm::IRBuilderBase::InsertPoint resume = b_.saveIP();
  begin_function(body);
  f_.in_parallel = true;
  Value* environment = body->getArg(0);
  int64_t offset = 0;  // of the next slot
  const auto next = [&](llvm::Type* slot, int64_t alignment) {
    return load_field(environment, std::exchange(offset, offset + kPointerBytes), slot, alignment);
  };
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(f_.scopes.front().insert_before);
    Value* workspace = next(pointer, kBufferAlignment);
    Value* stride = next(i64, 0);
    Value* thread = b_.CreateSExt(body->getArg(3), i64);
    f_.thread_workspace = b_.CreateGEP(b_.getInt8Ty(), workspace, b_.CreateMul(thread, stride));
    for (const ir::Buffer& buffer : buffers) {
      BufferInfo info = outer.buffers.at(buffer.get());
      info.base = next(pointer, kBufferAlignment);
      f_.buffers[buffer.get()] = info;
    }
    for (const auto& [node, value] : outer.vars)
      if (value.is_constant()) f_.vars[node] = value;
    for (const auto& [var, range] : captured)
      f_.vars[var.get()] = affine_of(new_atom(next(i64, 0), 0, range));
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
