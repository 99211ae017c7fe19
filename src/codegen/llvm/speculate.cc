// Minima and maxima over windows and rows. The processor's instruction forgets a NaN: max(NaN, x) = x. The exact
// maximum takes three instructions, which triples the work of a pool. So the part of a kernel that reduces is
// emitted twice. The first copy uses the plain instruction and looks once at each value that it reads; pools read a
// value for several windows. Only if a NaN was among them, the second, exact copy does everything again, with the
// same results elsewhere.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <unordered_set>

#include "codegen/llvm/emitter.h"
#include "ir/analysis.h"
#include "ir/structural.h"

namespace tensorsmith::codegen {

using llvm::Value;

namespace {

bool reads(const ir::Expr& e, const ir::Buffer& buffer) {
  const auto loads = ir::loads_of(e);
  return std::any_of(loads.begin(), loads.end(),
                     [&](const ir::Load* load) { return load->buffer == buffer; });
}

// B[i] = max(B[i], x) or min, of f32 or f64.
bool is_update(const ir::Store& store) {
  const ir::DType dtype = store.buffer->dtype;
  const auto* op = ir::as<ir::Binary>(store.value);
  return (dtype == ir::DType::kF32 || dtype == ir::DType::kF64) && op != nullptr &&
         (op->op == ir::BinaryOp::kMin || op->op == ir::BinaryOp::kMax) &&
         ir::structural_equal(op->a, ir::load(store.buffer, store.indices)) && !reads(op->b, store.buffer);
}

// Whether the statement gives the same when it is executed again: what it updates, it also begins. Other
// reductions than minima and maxima, and functions, would be too much code for a copy that is hardly ever used.
bool is_repeatable(const ir::Stmt& s) {
  std::unordered_set<const ir::BufferNode*> written;
  std::vector<const ir::Store*> stores;
  bool updates = false;
  bool allowed = true;
  ir::for_each_stmt(s, [&](const ir::Stmt& inner) {
    if (const auto* loop = ir::as<ir::For>(inner)) allowed = allowed && loop->kind != ir::ForKind::kParallel;
    const auto* store = ir::as<ir::Store>(inner);
    if (store == nullptr) return;
    stores.push_back(store);
    written.insert(store->buffer.get());
    const bool update = is_update(*store);
    updates = updates || update;
    allowed = allowed && (update || !reads(store->value, store->buffer));
    ir::for_each_expr(store->value, [&](const ir::Expr& e) {
      if (const auto* call = ir::as<ir::Call>(e))
        allowed =
            allowed && (call->intrinsic == ir::Intrinsic::kAbs || call->intrinsic == ir::Intrinsic::kSqrt);
    });
  });
  if (!updates || !allowed) return false;
  // Buffers that begin with something else than what is written here.
  std::unordered_set<const ir::BufferNode*> begun;
  for (bool more = true; more;) {
    more = false;
    for (const ir::Store* store : stores) {
      const auto loads = ir::loads_of(store->value);
      const bool begins = std::all_of(loads.begin(), loads.end(), [&](const ir::Load* load) {
        return !written.contains(load->buffer.get()) || begun.contains(load->buffer.get());
      });
      if (begins && !is_update(*store)) more = begun.insert(store->buffer.get()).second || more;
    }
  }
  return begun.size() == written.size();
}

}  // namespace

bool Emitter::is_forgetful(const ir::Store& store) const {
  return speculation_ != nullptr && is_update(store);
}

void Emitter::emit_exact_if_nan(const ir::Stmt& s, const std::function<void()>& emit_part) {
  if (!is_repeatable(s)) return emit_part();
  Speculation speculation;
  // Something to put initial values before.
  llvm::BasicBlock* start = new_block("plain");
  speculation.begin = b_.CreateBr(start);
  b_.SetInsertPoint(start);
  speculation_ = &speculation;
  emit_part();
  speculation_ = nullptr;

  Value* any = nullptr;
  for (const auto& [type, slot] : speculation.seen) {
    llvm::Type* content = slot->getAllocatedType();
    Value* seen = b_.CreateLoad(content, slot);
    if (!content->isVectorTy()) {
      seen = b_.CreateFCmpUNO(seen, seen);
    } else {
      if (!traits_.mask_registers) seen = b_.CreateICmpNE(seen, llvm::Constant::getNullValue(content));
      seen = b_.CreateOrReduce(seen);
    }
    any = any == nullptr ? seen : b_.CreateOr(any, seen);
  }
  if (any == nullptr) return;
  llvm::BasicBlock* exact = new_block("exact");
  llvm::BasicBlock* join = new_block("exact.end");
  b_.CreateCondBr(any, exact, join);
  b_.SetInsertPoint(exact);
  loaded_ = {};
  compact_ = true;
  emit_part();
  compact_ = false;
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  loaded_ = {};
}

void Emitter::update_extremum(const ir::Store& s) {
  const auto& update = *ir::as<ir::Binary>(s.value);
  Val next = eval(update.b);
  look_for_nan(next.value);
  Val best = eval(update.a);
  const bool vectors = unify(best, next);
  const ir::BinaryOp wins = update.op == ir::BinaryOp::kMin ? ir::BinaryOp::kLt : ir::BinaryOp::kGt;
  Value* chosen = comparison(wins, s.buffer->dtype, best.value, next.value);
  store(s.buffer, s.indices, {b_.CreateSelect(chosen, best.value, next.value), !vectors});
}

// Two values are compared at once, for being unordered, and what is found is added to what was found before: the
// comparisons do not wait for each other. Of scalars a sum of squares, which is NaN only if one of them is.
void Emitter::look_for_nan(Value* x) {
  if (is_number(x)) return;
  if (llvm::isa<llvm::Constant>(x)) x = b_.CreateFreeze(x);  // NaN as an instruction like others
  Speculation& now = *speculation_;
  if (now.block != b_.GetInsertBlock()) {
    now.block = b_.GetInsertBlock();
    now.looked_at.clear();
    now.unpaired.clear();
  }
  if (!now.looked_at.insert(x).second) return;
  llvm::Type* type = x->getType();
  const bool vector = type->isVectorTy();
  // Vectors of truth values where comparisons give masks, else of integers that are all ones or zero.
  llvm::Type* bit = b_.getInt1Ty();
  llvm::Type* found = traits_.mask_registers ? bit : b_.getIntNTy(type->getScalarSizeInBits());
  llvm::Type* content = vector ? like(found, type) : type;
  llvm::AllocaInst*& slot = now.seen[type];
  if (slot == nullptr) {
    const llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(f_.alloca_point);
    slot = b_.CreateAlloca(content, nullptr, "seen");
    b_.SetInsertPoint(now.begin);
    // Not 0: squares of small numbers would be subnormal.
    b_.CreateStore(vector ? llvm::Constant::getNullValue(content) : llvm::ConstantFP::get(content, 1.0),
                   slot);
  }
  if (!vector) {
    Value* known = b_.CreateLoad(content, slot);
    Value* sum = traits_.fma ? b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, x, known})
                             : b_.CreateFAdd(b_.CreateFMul(x, x), known);
    b_.CreateStore(sum, slot);
    return;
  }
  const auto pair = now.unpaired.find(type);
  Value* other = x;
  if (pair != now.unpaired.end()) {
    // What was emitted for the value before stands ahead of this one: it is emitted again for both.
    other = pair->second.value;
    for (llvm::Instruction* made : pair->second.made) made->eraseFromParent();
    now.unpaired.erase(pair);
  }
  Value* unordered = b_.CreateFCmpUNO(other, x);
  Value* wide = traits_.mask_registers ? unordered : b_.CreateSExt(unordered, content);
  Value* known = b_.CreateLoad(content, slot);
  Value* all = b_.CreateOr(known, wide);
  Value* written = b_.CreateStore(all, slot);
  if (other != x) return;
  Unpaired& left = now.unpaired[type];
  left.value = x;
  for (Value* made : {written, all, known, wide, unordered}) {
    auto* instruction = llvm::cast<llvm::Instruction>(made);
    if (std::find(left.made.begin(), left.made.end(), instruction) == left.made.end())
      left.made.push_back(instruction);
  }
}

}  // namespace tensorsmith::codegen
