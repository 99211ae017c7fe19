// Statements: loops of every kind, branches, allocations.
#include <algorithm>
#include <functional>

#include "codegen/launch.h"
#include "codegen/llvm/statement_emitter.h"
#include "ir/analysis.h"

namespace tensorsmith::codegen {

using ir::For;
using ir::ForKind;
using ir::Stmt;
using llvm::Value;

void StatementEmitter::emit(const Stmt& s) {
  if (!s) return;
  if (const SpeculativePart* part = parts_.part(s)) return emit_exact_if_nan(part, [&] { emit_once(s); });
  emit_once(s);
}

void StatementEmitter::emit_once(const Stmt& s) {
  ir::visit(ir::overloaded{[&](const For& loop) { emit_for(s, loop); },
                           [&](const ir::Store& st) {
                             const EvaluationScope scope(context_.evaluated);
                             if (is_forgetful(st)) return update_extremum(st);
                             memory_.store(st.buffer, st.indices, expressions_.eval(st.value));
                           },
                           [&](const ir::IfThenElse& branch) { emit_if(branch); },
                           [&](const ir::Seq& seq) {
                             for (const Stmt& part : seq.stmts) emit(part);
                           },
                           [&](const ir::Allocate& allocate) { emit_allocate(s, allocate); }},
            s);
}

void StatementEmitter::emit_for(const Stmt& s, const For& loop) {
  const int64_t step_before = unroll_step_;
  if (loop.auto_unroll_max_step > 0) unroll_step_ = loop.auto_unroll_max_step;
  const std::optional<int64_t> extent = ir::as_int(loop.extent);
  if (extent && *extent <= 0) {
    unroll_step_ = step_before;
    return;
  }
  if (emit_matrix(loop)) {
    unroll_step_ = step_before;
    return;
  }
  const int64_t steps = decisions_.steps(s);
  const auto serial_or_unrolled = [&](int64_t limit) {
    limit = compact_ || parts_.is_around(s)
                ? 0
                : std::min(limit, LoopDecisions::kMaxProgramSteps - memory_.steps());
    if (extent && (*extent == 1 || steps <= limit)) {
      emit_unrolled(loop, *extent);
    } else {
      emit_serial(loop);
    }
  };
  // The loop that carries the pragma is not unrolled unless it fits the enclosing limit.
  const int64_t limit =
      LoopDecisions::unroll_limit(loop.auto_unroll_max_step > 0 ? step_before : unroll_step_);
  switch (loop.kind) {
    case ForKind::kSerial:
      serial_or_unrolled(decisions_.indexes_registers(s) ? LoopDecisions::kMaxUnrolledSteps : limit);
      break;
    case ForKind::kUnrolled:
      if (extent && !compact_ && emit_transposed(loop, *extent)) break;
      serial_or_unrolled(LoopDecisions::kMaxUnrolledSteps);
      break;
    case ForKind::kVectorized:
      TS_CHECK(extent.has_value(), "vectorized loop over '" + loop.var.name() + "' of variable extent");
      if (context_.lanes == 1 && decisions_.vectorizable(s) && *extent > 1) {
        emit_vectorized(loop, *extent);
      } else {
        serial_or_unrolled(LoopDecisions::kMaxUnrolledSteps);
      }
      break;
    case ForKind::kParallel:
      if (!f_.in_parallel && context_.lanes == 1 && extent && *extent > 1) {
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

void StatementEmitter::emit_unrolled(const For& loop, int64_t extent) {
  for (int64_t i = 0; i < extent; ++i) {
    indices_.bind(loop.var, Affine::of(i));
    emit(loop.body);
  }
  indices_.unbind(loop.var);
}

void StatementEmitter::emit_serial(const For& loop) {
  const Affine extent = [&] {
    const EvaluationScope scope(context_.evaluated);
    return indices_.index(loop.extent);
  }();
  const ir::Interval bound = indices_.range_of(extent);
  const ir::Interval range{0, bound.bounded() ? std::max<int64_t>(bound.max - 1, 0) : ir::Interval::kPosInf};
  TS_CHECK(extent.uniform(), "loop over '" + loop.var.name() + "' has an extent that differs between lanes");
  emit_loop(loop.var, b_.getInt64(0), indices_.uniform_sum(extent), range, bound.bounded() && bound.min > 0,
            [&](const Affine&) {
              if (bound.min != bound.max) indices_.note_varying_extent();
              emit(loop.body);
            });
}

void StatementEmitter::emit_loop(const ir::Var& var, Value* begin, Value* end, ir::Interval range,
                                 bool nonempty, const std::function<void(const Affine&)>& body) {
  llvm::BasicBlock* exit = context_.new_block("loop.end");
  llvm::BasicBlock* header = context_.new_block("loop");
  if (nonempty) {
    b_.CreateBr(header);
  } else {
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), header, exit);
  }
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.SetInsertPoint(header);
  llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2, var.name());
  i->addIncoming(begin, before);
  // Values of this scope are inserted at the end of the header.
  llvm::BasicBlock* inside = context_.new_block("body");
  indices_.open_scope(b_.CreateBr(inside));
  b_.SetInsertPoint(inside);
  const Affine value = indices_.defined_in_scope(i, range);
  indices_.bind(var, value);
  const int loops_before = ++loops_;
  auto reads_outside = memory_.exchange_reads({});
  body(value);
  indices_.unbind(var);
  // Only for innermost loops: further out, a multiplication costs less than a register that is
  // occupied throughout.
  if (loops_ == loops_before) {
    memory_.prefetch_ahead();
    indices_.add_up_multiples(i, before, begin);
  }
  memory_.exchange_reads(std::move(reads_outside));
  indices_.close_scope();
  Value* next = b_.CreateAdd(i, b_.getInt64(1), "", /*HasNUW=*/true, /*HasNSW=*/true);
  i->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpNE(next, end), header, exit);
  b_.SetInsertPoint(exit);
}

// Emits the loop in pieces of a few registers; the code generator would split longer vectors, at a
// higher cost.
void StatementEmitter::emit_vectorized(const For& loop, int64_t extent) {
  const int64_t widest = context_.traits.vector_bytes;  // lanes: four registers of 32-bit elements
  const auto piece = [&](const Affine& start, int64_t lanes) {
    context_.lanes = lanes;
    Affine value = start;
    value.lane = lanes > 1 ? 1 : 0;
    indices_.bind(loop.var, value);
    emit(loop.body);
    indices_.unbind(loop.var);
    context_.lanes = 1;
  };
  const int64_t pieces = extent / widest;
  if (pieces > 4) {
    emit_loop(ir::Var(loop.var.name()), b_.getInt64(0), b_.getInt64(pieces), {0, pieces - 1}, true,
              [&](const Affine& number) { piece(indices_.sum(Affine(), number, widest), widest); });
  } else {
    for (int64_t p = 0; p < pieces; ++p) piece(Affine::of(p * widest), widest);
  }
  if (extent % widest != 0) piece(Affine::of(pieces * widest), extent % widest);
}

// Handles vectors stored across rows: for u unrolled, for v in lanes: B[.. v * S + u] = f(u, v), S
// > 1. Together the vectors are the columns of a matrix.
bool StatementEmitter::emit_transposed(const For& loop, int64_t extent) {
  const auto* inner = ir::as<For>(loop.body);
  const int64_t widest = context_.traits.vector_bytes / 4;
  if (context_.lanes != 1 || extent < 2 || extent > widest || inner == nullptr ||
      inner->kind != ir::ForKind::kVectorized || !decisions_.vectorizable(loop.body))
    return false;
  const std::optional<int64_t> lanes = ir::as_int(inner->extent);
  const auto* store = ir::as<ir::Store>(inner->body);
  if (store == nullptr || !lanes || *lanes < 2 || *lanes > widest) return false;
  if (store->buffer->dtype != ir::DType::kF32 || memory_.info_of(store->buffer).lanes != 1) return false;
  // All values are computed before the first is stored.
  for (const ir::Load* load : ir::loads_of(store->value))
    if (load->buffer == store->buffer) return false;

  context_.lanes = *lanes;
  Affine lane;
  lane.lane = 1;
  indices_.bind(inner->var, lane);
  // Values that were evaluated for another u are not valid for this one.
  const auto at = [&](int64_t u) {
    const EvaluationScope scope(context_.evaluated);
    indices_.bind(loop.var, Affine::of(u));
    return memory_.address_of(store->buffer, store->indices);
  };
  const MemoryEmitter::Address second = at(1);
  const MemoryEmitter::Address first = at(0);
  const bool matrix = MemoryEmitter::are_columns(first, second);
  if (matrix) {
    std::vector<Value*> columns;
    for (int64_t u = 0; u < extent; ++u) {
      at(u);
      const EvaluationScope scope(context_.evaluated);
      columns.push_back(
          values_.to_memory(ir::DType::kF32, values_.broadcast(expressions_.eval(store->value))));
    }
    memory_.store_columns(first, std::move(columns));
  }
  indices_.unbind(inner->var);
  indices_.unbind(loop.var);
  context_.lanes = 1;
  return matrix;
}

void StatementEmitter::emit_if(const ir::IfThenElse& branch) {
  const ExpressionEmitter::Condition c = [&] {
    const EvaluationScope scope(context_.evaluated);
    return expressions_.eval_condition(branch.condition);
  }();
  if (c.never) return emit(branch.else_body);
  if (c.uniform == nullptr && c.lanes == nullptr) return emit(branch.then_body);
  Value* mask_before = context_.mask;
  const auto with_mask = [&](Value* mask, const Stmt& body) {
    if (mask != nullptr) context_.mask = mask_before == nullptr ? mask : b_.CreateAnd(mask_before, mask);
    emit(body);
    context_.mask = mask_before;
  };
  if (c.uniform == nullptr || (c.lanes != nullptr && branch.else_body)) {
    Value* mask =
        c.uniform == nullptr ? c.lanes : b_.CreateAnd(c.lanes, values_.broadcast({c.uniform, true}));
    with_mask(mask, branch.then_body);
    if (branch.else_body) with_mask(b_.CreateNot(mask), branch.else_body);
    return;
  }
  llvm::BasicBlock* then_block = context_.new_block("then");
  llvm::BasicBlock* join = context_.new_block("end");
  llvm::BasicBlock* else_block = branch.else_body ? context_.new_block("else") : join;
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

void StatementEmitter::emit_allocate(const Stmt& s, const ir::Allocate& allocate) {
  const ir::BufferNode* node = allocate.buffer.get();
  const int64_t elements = std::max<int64_t>(node->allocation_elements(), 1) * context_.lanes;
  const int64_t bytes = ir::bytes_of(node->dtype, elements);
  const bool serial = !f_.in_parallel;
  Value* base = nullptr;
  if (bytes <= kMaxStackBuffer && f_.stack_bytes + bytes <= kMaxStack) {
    f_.stack_bytes += bytes;
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(f_.alloca_point);
    auto* type = llvm::ArrayType::get(values_.memory_type(node->dtype), elements);
    llvm::AllocaInst* slot = b_.CreateAlloca(type, nullptr, node->name);
    slot->setAlignment(llvm::Align(kBufferAlignment));
    base = slot;
  } else {
    // Each buffer has its own place in the workspace. No two may share memory, because accesses to
    // different buffers are declared free of aliases.
    int64_t& total = serial ? shared_bytes_ : thread_bytes_;
    const auto [it, is_new] = workspace_offset_.try_emplace(node, total);
    if (is_new) total += aligned_to_buffer(bytes);
    Value* workspace = serial ? f_.shared_workspace : f_.thread_workspace;
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(indices_.outermost());
    base = b_.CreateGEP(b_.getInt8Ty(), workspace, b_.getInt64(it->second));
  }
  using Storage = MemoryEmitter::Storage;
  memory_.declare(allocate.buffer, base, decisions_.in_registers(s) ? Storage::kRegisters : Storage::kLocal);
  emit(allocate.body);
  memory_.remove(allocate.buffer);
}

}  // namespace tensorsmith::codegen
