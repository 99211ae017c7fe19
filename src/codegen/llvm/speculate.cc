// Minima and maxima over windows and rows. The processor's instruction drops a NaN: max(NaN, x) =
// x. The exact maximum takes three instructions, which triples the work of a pool. So the reducing
// parts of a kernel are emitted twice (extremum_regions.h). The first copy uses the plain
// instruction. Only if a NaN is among the values, the second, exact copy recomputes everything;
// results without a NaN stay the same.
#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "codegen/llvm/statement_emitter.h"

namespace tensorsmith::codegen {

using llvm::Value;

namespace {

// Vectors that one iteration of the loop that checks a region handles.
constexpr int64_t kVectorsAtOnce = 8;
// Regions of fewer vectors are checked without loops.
constexpr int64_t kVectorsUnrolled = 32;

}  // namespace

bool StatementEmitter::is_forgetful(const ir::Store& store) const {
  return speculation_ != nullptr && is_float_extremum_update(store);
}

void StatementEmitter::emit_exact_if_nan(const SpeculativePart* part,
                                         const std::function<void()>& emit_part) {
  if (part == nullptr || speculation_ != nullptr || compact_ || context_.lanes > 1) return emit_part();
  // Initial values are inserted before this branch.
  llvm::BasicBlock* start = context_.new_block("plain");
  llvm::Instruction* begin = b_.CreateBr(start);
  b_.SetInsertPoint(start);
  Speculation speculation{*part, NanDetector(context_, f_.alloca_point, begin)};
  speculation_ = &speculation;
  const bool before = !part->regions.empty();
  const auto plain = [&] {
    memory_.forget();
    emit_part();
  };
  const auto exact = [&] {
    speculation_ = nullptr;
    compact_ = true;
    memory_.forget();
    emit_part();
    compact_ = false;
  };
  if (before) {
    for (const Region& region : part->regions) look_at(region);
  } else {
    plain();
  }
  if (Value* any = speculation.nan.seen()) {
    llvm::BasicBlock* exactly = context_.new_block("exact");
    llvm::BasicBlock* otherwise = before ? context_.new_block("numbers") : nullptr;
    llvm::BasicBlock* join = context_.new_block("exact.end");
    b_.CreateCondBr(any, exactly, before ? otherwise : join,
                    llvm::MDBuilder(b_.getContext()).createUnlikelyBranchWeights());
    if (before) {
      b_.SetInsertPoint(otherwise);
      plain();
      b_.CreateBr(join);
    }
    b_.SetInsertPoint(exactly);
    exact();
    b_.CreateBr(join);
    b_.SetInsertPoint(join);
  } else if (before) {
    plain();
  }
  speculation_ = nullptr;
  memory_.forget();
}

void StatementEmitter::update_extremum(const ir::Store& s) {
  const auto& update = *ir::as<ir::Binary>(s.value);
  const Val next = plain_extremum(update.op, update.b);
  memory_.store(s.buffer, s.indices, plain_extremum(update.op, expressions_.eval(update.a), next));
}

// For values that are checked here or were checked before the part.
Val StatementEmitter::plain_extremum(ir::BinaryOp op, const ir::Expr& e) {
  const auto* inner = ir::as<ir::Binary>(e);
  if (inner != nullptr && inner->op == op) {
    const Val a = plain_extremum(op, inner->a);
    return plain_extremum(op, a, plain_extremum(op, inner->b));
  }
  const Val v = expressions_.eval(e);
  const auto* load = ir::as<ir::Load>(e);
  const bool known = load != nullptr && speculation_->part.numbers.contains(load->buffer.get());
  if (!known && speculation_->part.regions.empty()) speculation_->nan.look_at(v.value);
  return v;
}

Val StatementEmitter::plain_extremum(ir::BinaryOp op, Val a, Val b) {
  const bool vectors = values_.unify(a, b);
  Value* chosen =
      op == ir::BinaryOp::kMin ? b_.CreateFCmpOLT(a.value, b.value) : b_.CreateFCmpOGT(a.value, b.value);
  return {b_.CreateSelect(chosen, a.value, b.value), !vectors};
}

// Checks all elements of a region, row by row; a dimension that is covered as a whole is merged
// with the one before it.
void StatementEmitter::look_at(const Region& region) {
  const ir::Buffer& buffer = region.buffer;
  MemoryEmitter::Address at;
  at.info = &memory_.info_of(buffer);
  at.in_range = true;
  std::vector<int64_t> extents, strides;  // of the loops, the innermost first
  int64_t row = 1;                        // contiguous elements
  for (size_t d = buffer->shape.size(); d-- > 0;) {
    const int64_t extent = std::min(region.extent[d], buffer->shape[d]);
    const int64_t stride = at.info->strides[d];
    // The region is clamped to the buffer: elements outside are not read.
    const EvaluationScope scope(context_.evaluated);
    const ir::Expr begin = ir::max(ir::min(ir::to_expr(region.begin[d]), ir::Expr(buffer->shape[d] - extent)),
                                   ir::Expr(int64_t{0}));
    at.element = indices_.sum(at.element, indices_.index(begin), stride);
    if (extents.empty() && stride == row) {
      row *= extent;
    } else if (extent > 1) {
      extents.push_back(extent);
      strides.push_back(stride);
    }
  }
  const int64_t element_bytes = std::max<int64_t>(ir::bytes_of(buffer->dtype), 4);  // bytes per element in a
                                                                                    // register
  const int64_t lanes = context_.traits.vector_bytes / element_bytes;
  int64_t vectors = (row + lanes - 1) / lanes;
  for (const int64_t extent : extents) vectors *= extent;
  const auto rows = [&](const auto& self, size_t level, const MemoryEmitter::Address& start) -> void {
    if (level == 0) return look_at_row(start, row, lanes, vectors <= kVectorsUnrolled);
    const int64_t extent = extents[level - 1];
    const auto step = [&](const Affine& i) {
      MemoryEmitter::Address next = start;
      next.element = indices_.sum(start.element, i, strides[level - 1]);
      self(self, level - 1, next);
    };
    if (vectors <= kVectorsUnrolled) {
      for (int64_t i = 0; i < extent; ++i) step(Affine::of(i));
    } else {
      emit_loop(ir::Var("row"), b_.getInt64(0), b_.getInt64(extent), {0, extent - 1}, true, step);
    }
  };
  rows(rows, extents.size(), at);
}

void StatementEmitter::look_at_row(const MemoryEmitter::Address& at, int64_t elements, int64_t lanes,
                                   bool unrolled) {
  const auto look = [&](const Affine& offset, int64_t count) {
    MemoryEmitter::Address from = at;
    from.element = indices_.sum(at.element, offset, 1);
    from.element.lane = count > 1 ? 1 : 0;
    context_.lanes = count;
    speculation_->nan.look_at(memory_.load_from(from).value);
    context_.lanes = 1;
  };
  while (lanes > elements) lanes /= 2;
  const int64_t at_once = kVectorsAtOnce * lanes;
  int64_t done = 0;
  if (!unrolled && elements >= 2 * at_once) {
    const int64_t times = elements / at_once;
    emit_loop(ir::Var("look"), b_.getInt64(0), b_.getInt64(times), {0, times - 1}, true,
              [&](const Affine& i) {
                for (int64_t k = 0; k < kVectorsAtOnce; ++k) {
                  Affine offset = indices_.sum(Affine(), i, at_once);
                  offset.constant = k * lanes;
                  look(offset, lanes);
                }
              });
    done = times * at_once;
  }
  // The last vector ends with the row and may overlap the one before it.
  for (; done < elements; done += lanes) look(Affine::of(std::min(done, elements - lanes)), lanes);
}

}  // namespace tensorsmith::codegen
