// Emits parallel loops: the body becomes a function of its own, which gets its captures through a
// closure.
#include <utility>

#include "codegen/captures.h"
#include "codegen/launch.h"
#include "codegen/llvm/statement_emitter.h"

namespace tensorsmith::codegen {

using llvm::Value;

void StatementEmitter::emit_parallel(const ir::For& loop, int64_t extent) {
  const Captures used = captures_of(loop.body);
  std::vector<ir::Buffer> buffers;
  for (const ir::Buffer& buffer : used.buffers)
    if (memory_.knows(buffer)) buffers.push_back(buffer);

  // The closure has pointer-sized slots: the call's thread workspace, its stride, then buffers,
  // then variables.
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Type* i64 = b_.getInt64Ty();
  std::vector<Value*> slots;
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(indices_.outermost());
    slots.push_back(load_field(f_.context, ContextOffsets::kThreadWorkspace, pointer, kBufferAlignment));
    slots.push_back(load_field(f_.context, ContextOffsets::kThreadWorkspaceStride, i64, 0));
  }
  for (const ir::Buffer& buffer : buffers) slots.push_back(memory_.info_of(buffer).base);
  std::vector<std::pair<ir::Var, Affine>> constants;  // need no slot
  std::vector<std::pair<ir::Var, ir::Interval>> captured;
  for (const ir::Var& var : used.vars) {
    const Affine* value = indices_.find(var);
    if (value == nullptr) continue;
    if (value->is_constant()) {
      constants.emplace_back(var, *value);
      continue;
    }
    captured.emplace_back(var, indices_.range_of(*value));
    slots.push_back(indices_.uniform_sum(*value));
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
  // Emits the call in the kernel.
  memory_.forget();
  Value* run = load_field(f_.context, ContextOffsets::kParallelFor, pointer, 0);
  Value* pool = load_field(f_.context, ContextOffsets::kPool, pointer, 0);
  b_.CreateCall(llvm::FunctionType::get(b_.getVoidTy(), {pointer, i64, pointer, pointer}, false), run,
                {pool, b_.getInt64(extent), body, closure});

  // Emits the body in a function of its own.
  const FunctionState outer = std::exchange(f_, {});
  IndexEmitter::Nest outer_nest = indices_.exchange({});
  MemoryEmitter::Buffers outer_buffers = memory_.exchange({});
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
    b_.SetInsertPoint(indices_.outermost());
    Value* workspace = next(pointer, kBufferAlignment);
    Value* stride = next(i64, 0);
    Value* thread = b_.CreateSExt(body->getArg(3), i64);
    f_.thread_workspace = b_.CreateGEP(b_.getInt8Ty(), workspace, b_.CreateMul(thread, stride));
    MemoryEmitter::Buffers inside;
    for (const ir::Buffer& buffer : buffers) {
      MemoryEmitter::BufferInfo& info = inside[buffer.get()] = outer_buffers.at(buffer.get());
      info.base = next(pointer, kBufferAlignment);
    }
    memory_.exchange(std::move(inside));
    for (const auto& [var, value] : constants) indices_.bind(var, value);
    for (const auto& [var, range] : captured)
      indices_.bind(var, indices_.defined_in_scope(next(i64, 0), range));
  }
  emit_exact_if_nan(parts_.range(loop), [&] {
    emit_loop(loop.var, body->getArg(1), body->getArg(2), {0, extent - 1}, false,
              [&](const Affine&) { emit(loop.body); });
  });
  end_function();
  f_ = outer;
  indices_.exchange(std::move(outer_nest));
  memory_.exchange(std::move(outer_buffers));
  b_.restoreIP(resume);
}

}  // namespace tensorsmith::codegen
