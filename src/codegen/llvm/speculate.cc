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
    if (content->getScalarType()->isFloatingPointTy())
      seen = b_.CreateFCmpUNO(seen, seen);
    else
      seen = b_.CreateNot(seen);
    if (content->isVectorTy()) seen = b_.CreateOrReduce(seen);
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

// One instruction a value, or for two of them:
//  - vectors with mask registers: a comparison for ordered values, of two at once, under the mask so far;
//  - other vectors: a comparison for unordered values with what has been seen, all ones of which are NaN;
//  - scalars: a sum of squares, which is NaN only if one of them is.
void Emitter::look_for_nan(Value* x) {
  if (llvm::isa<llvm::Constant>(x)) return;
  Speculation& now = *speculation_;
  if (now.block != b_.GetInsertBlock()) {
    now.block = b_.GetInsertBlock();
    now.looked_at.clear();
    now.unpaired.clear();
  }
  if (!now.looked_at.insert(x).second) return;
  llvm::Type* type = x->getType();
  const bool masks = type->isVectorTy() && traits_.mask_registers;
  llvm::Type* content = masks ? like(b_.getInt1Ty(), type) : type;
  llvm::AllocaInst*& slot = now.seen[type];
  if (slot == nullptr) {
    const llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(f_.alloca_point);
    slot = b_.CreateAlloca(content, nullptr, "seen");
    b_.SetInsertPoint(now.begin);
    b_.CreateStore(masks ? llvm::Constant::getAllOnesValue(content) : llvm::ConstantFP::get(content, 1.0),
                   slot);
  }
  if (masks) {
    if (const auto found = now.unpaired.find(type); found != now.unpaired.end()) {
      // The comparison of the value before with itself becomes one of both; it has to stand behind this value.
      auto* comparison = found->second;
      auto* conjunction = llvm::cast<llvm::Instruction>(*comparison->user_begin());
      auto* written = llvm::cast<llvm::Instruction>(*conjunction->user_begin());
      Value* before = comparison->getOperand(0);
      auto* known = llvm::cast<llvm::Instruction>(conjunction->getOperand(0));
      written->eraseFromParent();
      conjunction->eraseFromParent();
      comparison->eraseFromParent();
      known->eraseFromParent();
      now.unpaired.erase(found);
      Value* ordered = b_.CreateFCmpORD(before, x);
      b_.CreateStore(b_.CreateAnd(b_.CreateLoad(content, slot), ordered), slot);
      return;
    }
    Value* known = b_.CreateLoad(content, slot);
    Value* ordered = b_.CreateFCmpORD(x, x);
    b_.CreateStore(b_.CreateAnd(known, ordered), slot);
    now.unpaired[type] = llvm::cast<llvm::Instruction>(ordered);
    return;
  }
  Value* known = b_.CreateLoad(content, slot);
  Value* seen = nullptr;
  if (type->isVectorTy()) {
    llvm::Type* bits = like(b_.getIntNTy(type->getScalarSizeInBits()), type);
    seen = b_.CreateBitCast(b_.CreateSExt(b_.CreateFCmpUNO(known, x), bits), type);
  } else if (traits_.fma) {
    seen = b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, x, known});
  } else {
    seen = b_.CreateFAdd(b_.CreateFMul(x, x), known);
  }
  b_.CreateStore(seen, slot);
}

}  // namespace tensorsmith::codegen
