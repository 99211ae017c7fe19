// Addresses of elements: buffers and their alias information, address computation, alignment, and
// the zeros that are read in place of an invalid address.
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <numeric>

#include "codegen/llvm/memory_emitter.h"
#include "ir/analysis.h"

namespace tensorsmith::codegen {

using ir::Buffer;
using ir::Expr;
using llvm::Value;

MemoryEmitter::MemoryEmitter(EmitContext& context, ValueEmitter& values, IndexEmitter& indices,
                             const ir::Program& program)
    : context_(context), values_(values), indices_(indices), b_(context.builder) {
  make_alias_scopes(program);
}

// Each buffer gets an alias scope of its own, which tells LLVM that distinct buffers do not
// overlap.
void MemoryEmitter::make_alias_scopes(const ir::Program& program) {
  llvm::LLVMContext& context = b_.getContext();
  std::vector<const ir::BufferNode*> buffers;
  for (const ir::Buffer& b : program.inputs) buffers.push_back(b.get());
  for (const ir::Buffer& b : program.outputs) buffers.push_back(b.get());
  ir::for_each_stmt(program.body, [&](const ir::Stmt& s) {
    if (const auto* allocate = ir::as<ir::Allocate>(s)) buffers.push_back(allocate->buffer.get());
  });
  llvm::MDBuilder builder(context);
  llvm::MDNode* domain = builder.createAnonymousAliasScopeDomain();
  std::vector<llvm::Metadata*> scopes;
  for (const ir::BufferNode* buffer : buffers)
    if (ids_.try_emplace(buffer, static_cast<int>(ids_.size())).second)
      scopes.push_back(builder.createAnonymousAliasScope(domain, buffer->name));
  for (size_t i = 0; i < scopes.size(); ++i) {
    std::vector<llvm::Metadata*> others = scopes;
    others.erase(others.begin() + i);
    alias_metadata_.emplace_back(llvm::MDNode::get(context, {scopes[i]}),
                                 others.empty() ? nullptr : llvm::MDNode::get(context, others));
  }
}

void MemoryEmitter::declare(const Buffer& buffer, Value* base, Storage storage) {
  BufferInfo info;
  info.base = base;
  info.dtype = buffer->dtype;
  info.elements = buffer->allocation_elements();
  info.id = ids_.at(buffer.get());
  info.instance = instances_++;
  info.lanes = context_.lanes;
  info.read_only = storage == Storage::kInput;
  info.in_registers = storage == Storage::kRegisters;
  info.strides = buffer->effective_strides();
  const auto [it, is_new] = buffers_.try_emplace(buffer.get(), std::move(info));
  TS_CHECK(is_new, "buffer '" + buffer->name + "' is allocated inside itself");
}

const MemoryEmitter::BufferInfo& MemoryEmitter::info_of(const ir::Buffer& buffer) const {
  const auto it = buffers_.find(buffer.get());
  TS_CHECK(it != buffers_.end(), "buffer '" + buffer->name + "' is used outside of its allocation");
  return it->second;
}

llvm::Instruction* MemoryEmitter::annotate(llvm::Instruction* access, const BufferInfo& info,
                                           bool invariant) {
  const auto& [scope, others] = alias_metadata_[info.id];
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, scope);
  if (others != nullptr) access->setMetadata(llvm::LLVMContext::MD_noalias, others);
  if (invariant && info.read_only)
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
  return access;
}

Value* MemoryEmitter::pointer_to(const BufferInfo& info, const Affine& element) {
  return indices_.pointer_to(values_.memory_type(info.dtype), info.base, info.instance, element);
}

MemoryEmitter::Address MemoryEmitter::address_of(const Buffer& buffer, const std::vector<Expr>& indices) {
  Address at;
  at.info = &info_of(buffer);
  ir::Interval column = ir::Interval::everything();
  for (size_t d = 0; d < indices.size(); ++d) {
    const Affine i = indices_.index(indices[d]);
    if (d + 1 == indices.size() && at.info->strides[d] == 1) column = indices_.range_of(i);
    at.element = indices_.sum(at.element, i, at.info->strides[d]);
  }
  const ir::Interval range = indices_.range_of(at.element);
  at.in_range = range.bounded() && range.min >= 0 && range.max < at.info->elements;
  if (at.info->lanes > 1) {
    Affine lane;
    lane.lane = 1;
    at.element = indices_.sum(lane, at.element, at.info->lanes);
    return at;
  }
  if (at.in_range) {
    at.room_before = range.min;
    at.room_behind = at.info->elements - 1 - range.max;
  }
  if (column.bounded()) {
    // The rest of the row is valid around the accessed elements.
    at.room_before = std::max({at.room_before, column.min, int64_t{0}});
    at.room_behind = std::max({at.room_behind, buffer->shape.back() - 1 - column.max, int64_t{0}});
  }
  return at;
}

// Buffers are 64-byte aligned; the coefficients determine how much of that alignment the address
// keeps.
llvm::Align MemoryEmitter::alignment_of(const Address& at) const {
  const int64_t bytes = ir::bytes_of(at.info->dtype);
  int64_t known = std::gcd(int64_t{64}, at.element.constant * bytes);
  for (const auto& [atom, coefficient] : at.element.terms)
    known = std::gcd(known, (coefficient & 63) * bytes);
  return llvm::Align(std::max(known, bytes));
}

llvm::Align MemoryEmitter::element_alignment(const Address& at) {
  return llvm::Align(ir::bytes_of(at.info->dtype));
}

// Returns a block of zeros that a load may read in place of an invalid address.
Value* MemoryEmitter::zero_block(int64_t bytes) {
  if (bytes > zero_block_bytes_) {
    auto* type = llvm::ArrayType::get(b_.getInt8Ty(), bytes);
    auto* larger = new llvm::GlobalVariable(*b_.GetInsertBlock()->getModule(), type, true,
                                            llvm::GlobalValue::PrivateLinkage,
                                            llvm::ConstantAggregateZero::get(type), "zeros");
    larger->setAlignment(llvm::Align(64));
    if (zero_block_ != nullptr) {
      zero_block_->replaceAllUsesWith(larger);
      zero_block_->eraseFromParent();
    }
    zero_block_ = larger;
    zero_block_bytes_ = bytes;
  }
  return zero_block_;
}

// Returns the address of the first lane if the condition holds, else that of zeros. Loads whose
// offsets differ by little, as in unrolled code, share the selection: it is made for the start of a
// window.
Value* MemoryEmitter::guarded_pointer(const Address& at, Value* condition, int64_t size) {
  constexpr int64_t kWindow = 1024;  // bytes
  Affine first = at.element;
  first.lane = 0;
  if (condition == nullptr) return pointer_to(*at.info, first);
  const int64_t elements = kWindow / ir::bytes_of(at.info->dtype);
  const int64_t offset = ((first.constant % elements) + elements) % elements;
  first.constant -= offset;
  Value* start = b_.CreateSelect(condition, pointer_to(*at.info, first), zero_block(kWindow + size));
  if (offset == 0) return start;
  return b_.CreateGEP(type_of(at), start, b_.getInt64(offset));
}

}  // namespace tensorsmith::codegen
