// Statements: loops of every kind, branches, allocations.
#include <algorithm>
#include <functional>

#include "codegen/launch.h"
#include "codegen/llvm/emitter.h"
#include "ir/analysis.h"

namespace tensorsmith::codegen {

using ir::For;
using ir::ForKind;
using ir::Stmt;
using llvm::Value;

llvm::BasicBlock* Emitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(context_, name, f_.function);
}

void Emitter::emit(const Stmt& s) {
  if (!s) return;
  if (const SpeculativePart* part = parts_.part(s)) return emit_exact_if_nan(part, [&] { emit_once(s); });
  emit_once(s);
}

void Emitter::emit_once(const Stmt& s) {
  ir::visit(ir::overloaded{[&](const For& loop) { emit_for(s, loop); },
                           [&](const ir::Store& st) {
                             const EvaluationScope scope(evaluated_);
                             if (is_forgetful(st)) return update_extremum(st);
                             store(st.buffer, st.indices, eval(st.value));
                           },
                           [&](const ir::IfThenElse& branch) { emit_if(branch); },
                           [&](const ir::Seq& seq) {
                             for (const Stmt& part : seq.stmts) emit(part);
                           },
                           [&](const ir::Allocate& allocate) { emit_allocate(s, allocate); }},
            s);
}

void Emitter::emit_for(const Stmt& s, const For& loop) {
  const int64_t step_before = unroll_step_;
  if (loop.auto_unroll_max_step > 0) unroll_step_ = loop.auto_unroll_max_step;
  const std::optional<int64_t> extent = ir::as_int(loop.extent);
  if (extent && *extent <= 0) {
    unroll_step_ = step_before;
    return;
  }
  const int64_t steps = plan_.steps(s);
  const auto serial_or_unrolled = [&](int64_t limit) {
    limit = compact_ || parts_.is_around(s) ? 0 : std::min(limit, Plan::kMaxProgramSteps - emitted_steps_);
    if (extent && (*extent == 1 || steps <= limit)) {
      emit_unrolled(loop, *extent);
    } else {
      emit_serial(loop);
    }
  };
  // The loop that carries the pragma stays a loop unless it fits the default.
  const int64_t limit = Plan::unroll_limit(loop.auto_unroll_max_step > 0 ? step_before : unroll_step_);
  switch (loop.kind) {
    case ForKind::kSerial:
      serial_or_unrolled(plan_.indexes_registers(s) ? Plan::kMaxUnrolledSteps : limit);
      break;
    case ForKind::kUnrolled:
      if (extent && !compact_ && emit_transposed(loop, *extent)) break;
      serial_or_unrolled(Plan::kMaxUnrolledSteps);
      break;
    case ForKind::kVectorized:
      TS_CHECK(extent.has_value(), "vectorized loop over '" + loop.var.name() + "' of variable extent");
      if (lanes_ == 1 && plan_.vectorizable(s) && *extent > 1) {
        emit_vectorized(loop, *extent);
      } else {
        serial_or_unrolled(Plan::kMaxUnrolledSteps);
      }
      break;
    case ForKind::kParallel:
      if (!f_.in_parallel && lanes_ == 1 && extent && *extent > 1) {
        emit_parallel(loop, *extent);
      } else {
        emit_exact_if_nan(parts_.range(loop), [&] { serial_or_unrolled(limit); });
      }
      break;
    case ForKind::kThread:
      throw_internal_error(__FILE__, __LINE__, "a GPU loop in CPU code");
  }
  unroll_step_ = step_before;
}

void Emitter::emit_unrolled(const For& loop, int64_t extent) {
  for (int64_t i = 0; i < extent; ++i) {
    Affine value;
    value.constant = i;
    f_.vars[loop.var.get()] = value;
    emit(loop.body);
  }
  f_.vars.erase(loop.var.get());
}

void Emitter::emit_serial(const For& loop) {
  const Affine extent = [&] {
    const EvaluationScope scope(evaluated_);
    return index(loop.extent);
  }();
  const ir::Interval bound = range_of(extent);
  const ir::Interval range{0, bound.bounded() ? std::max<int64_t>(bound.max - 1, 0) : ir::Interval::kPosInf};
  TS_CHECK(extent.uniform(), "loop over '" + loop.var.name() + "' has an extent that differs between lanes");
  emit_loop(loop.var, b_.getInt64(0), uniform_sum(extent), range, bound.bounded() && bound.min > 0,
            [&](const Affine&) { emit(loop.body); });
}

void Emitter::emit_loop(const ir::Var& var, Value* begin, Value* end, ir::Interval range, bool nonempty,
                        const std::function<void(const Affine&)>& body) {
  llvm::BasicBlock* exit = new_block("loop.end");
  llvm::BasicBlock* header = new_block("loop");
  if (nonempty) {
    b_.CreateBr(header);
  } else {
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), header, exit);
  }
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.SetInsertPoint(header);
  llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2, var.name());
  i->addIncoming(begin, before);
  // Values of this scope are put at the end of the header.
  llvm::BasicBlock* inside = new_block("body");
  Scope scope;
  scope.insert_before = b_.CreateBr(inside);
  f_.scopes.push_back(std::move(scope));
  b_.SetInsertPoint(inside);
  const int depth = static_cast<int>(f_.scopes.size()) - 1;
  const Affine value = affine_of(new_atom(i, depth, range));
  f_.vars[var.get()] = value;
  body(value);
  f_.vars.erase(var.get());
  f_.scopes.pop_back();
  Value* next = b_.CreateAdd(i, b_.getInt64(1), "", /*HasNUW=*/true, /*HasNSW=*/true);
  i->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpNE(next, end), header, exit);
  b_.SetInsertPoint(exit);
}

// In pieces of a few registers: longer vectors would only be split by the code generator, at a higher price.
void Emitter::emit_vectorized(const For& loop, int64_t extent) {
  const int64_t widest = traits_.vector_bytes;  // lanes: four registers of 32-bit elements
  const auto piece = [&](const Affine& start, int64_t lanes) {
    lanes_ = static_cast<int>(lanes);
    Affine value = start;
    value.lane = lanes > 1 ? 1 : 0;
    f_.vars[loop.var.get()] = value;
    emit(loop.body);
    f_.vars.erase(loop.var.get());
    lanes_ = 1;
  };
  const int64_t pieces = extent / widest;
  if (pieces > 4) {
    emit_loop(ir::Var(loop.var.name()), b_.getInt64(0), b_.getInt64(static_cast<uint64_t>(pieces)),
              {0, pieces - 1}, true,
              [&](const Affine& number) { piece(sum(Affine(), number, widest), widest); });
  } else {
    for (int64_t p = 0; p < pieces; ++p) {
      Affine start;
      start.constant = p * widest;
      piece(start, widest);
    }
  }
  if (extent % widest != 0) {
    Affine start;
    start.constant = pieces * widest;
    piece(start, extent % widest);
  }
}

void Emitter::emit_if(const ir::IfThenElse& branch) {
  const Condition c = [&] {
    const EvaluationScope scope(evaluated_);
    return eval_condition(branch.condition);
  }();
  if (c.never) return emit(branch.else_body);
  if (c.uniform == nullptr && c.lanes == nullptr) return emit(branch.then_body);
  Value* mask_before = mask_;
  const auto with_mask = [&](Value* mask, const Stmt& body) {
    if (mask != nullptr) mask_ = mask_before == nullptr ? mask : b_.CreateAnd(mask_before, mask);
    emit(body);
    mask_ = mask_before;
  };
  if (c.uniform == nullptr || (c.lanes != nullptr && branch.else_body)) {
    Value* mask = c.uniform == nullptr ? c.lanes : b_.CreateAnd(c.lanes, broadcast({c.uniform, true}));
    with_mask(mask, branch.then_body);
    if (branch.else_body) with_mask(b_.CreateNot(mask), branch.else_body);
    return;
  }
  llvm::BasicBlock* then_block = new_block("then");
  llvm::BasicBlock* join = new_block("end");
  llvm::BasicBlock* else_block = branch.else_body ? new_block("else") : join;
  b_.CreateCondBr(c.uniform, then_block, else_block);
  b_.SetInsertPoint(then_block);
  with_mask(c.lanes, branch.then_body);
  b_.CreateBr(join);
  if (branch.else_body) {
    b_.SetInsertPoint(else_block);
    emit(branch.else_body);
    b_.CreateBr(join);
  }
  b_.SetInsertPoint(join);
}

void Emitter::emit_allocate(const Stmt& s, const ir::Allocate& allocate) {
  const ir::BufferNode* node = allocate.buffer.get();
  BufferInfo info;
  info.id = buffer_ids_.at(node);
  info.instance = instances_++;
  info.lanes = lanes_;
  info.in_registers = plan_.in_registers(s);
  info.strides = node->effective_strides();
  info.elements = node->allocation_elements();
  const int64_t bytes = std::max<int64_t>(info.elements, 1) * lanes_ * ir::bytes_of(node->dtype);
  const bool serial = !f_.in_parallel;
  if (bytes <= kMaxStackBuffer && f_.stack_bytes + bytes <= kMaxStack) {
    f_.stack_bytes += bytes;
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(f_.alloca_point);
    auto* type = llvm::ArrayType::get(memory_type(node->dtype),
                                      static_cast<uint64_t>(std::max<int64_t>(info.elements, 1) * lanes_));
    llvm::AllocaInst* slot = b_.CreateAlloca(type, nullptr, node->name);
    slot->setAlignment(llvm::Align(kBufferAlignment));
    info.base = slot;
  } else {
    // One place for each buffer: no two of them may share memory, because accesses to different buffers are
    // declared free of aliases.
    int64_t& total = serial ? shared_bytes_ : thread_bytes_;
    const auto [it, is_new] = workspace_offset_.try_emplace(node, total);
    if (is_new) total += aligned_to_buffer(bytes);
    Value* workspace = serial ? f_.shared_workspace : f_.thread_workspace;
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(f_.scopes.front().insert_before);
    info.base = b_.CreateGEP(b_.getInt8Ty(), workspace, b_.getInt64(static_cast<uint64_t>(it->second)));
  }
  const auto [it, is_new] = f_.buffers.try_emplace(node, info);
  TS_CHECK(is_new, "buffer '" + node->name + "' is allocated inside itself");
  emit(allocate.body);
  f_.buffers.erase(node);
}

}  // namespace tensorsmith::codegen
