#include "codegen/llvm/emitter.h"

#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "codegen/launch.h"
#include "ir/analysis.h"

namespace tensorsmith::codegen {

using llvm::Value;

Emitter::Emitter(const ir::Program& program, const TargetTraits& traits, const CodegenOptions& options,
                 llvm::Module& module)
    : program_(program),
      traits_(traits),
      options_(options),
      module_(module),
      context_(module.getContext()),
      b_(context_),
      parts_(program),
      plan_(program, traits.vector_registers) {}

// Each buffer is a scope of its own: what is known as "distinct buffers do not overlap".
void Emitter::make_alias_scopes() {
  std::vector<const ir::BufferNode*> buffers;
  for (const ir::Buffer& b : program_.inputs) buffers.push_back(b.get());
  for (const ir::Buffer& b : program_.outputs) buffers.push_back(b.get());
  ir::for_each_stmt(program_.body, [&](const ir::Stmt& s) {
    if (const auto* allocate = ir::as<ir::Allocate>(s)) buffers.push_back(allocate->buffer.get());
  });
  llvm::MDBuilder builder(context_);
  llvm::MDNode* domain = builder.createAnonymousAliasScopeDomain();
  std::vector<llvm::Metadata*> scopes;
  for (const ir::BufferNode* buffer : buffers)
    if (buffer_ids_.try_emplace(buffer, static_cast<int>(buffer_ids_.size())).second)
      scopes.push_back(builder.createAnonymousAliasScope(domain, buffer->name));
  for (size_t i = 0; i < scopes.size(); ++i) {
    std::vector<llvm::Metadata*> others = scopes;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    alias_metadata_.emplace_back(llvm::MDNode::get(context_, {scopes[i]}),
                                 others.empty() ? nullptr : llvm::MDNode::get(context_, others));
  }
}

const Emitter::BufferInfo& Emitter::info_of(const ir::Buffer& buffer) const {
  const auto it = f_.buffers.find(buffer.get());
  TS_CHECK(it != f_.buffers.end(), "buffer '" + buffer->name + "' is used outside of its allocation");
  return it->second;
}

// A member of the context, the buffer list or a closure: these do not change while a kernel runs.
Value* Emitter::load_field(Value* base, int64_t offset, llvm::Type* type, int64_t align_of_pointee) {
  Value* address = b_.CreateGEP(b_.getInt8Ty(), base, b_.getInt64(static_cast<uint64_t>(offset)));
  llvm::LoadInst* v = b_.CreateAlignedLoad(type, address, llvm::Align(8));
  v->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  if (align_of_pointee > 0) {
    v->setMetadata(llvm::LLVMContext::MD_align,
                   llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(
                                                   b_.getInt64(static_cast<uint64_t>(align_of_pointee)))));
  }
  return v;
}

void Emitter::begin_function(llvm::Function* function) {
  f_.function = function;
  function->setDoesNotThrow();
  function->addFnAttr("prefer-vector-width", std::to_string(traits_.vector_bytes * 8));
  function->addFnAttr("min-legal-vector-width", std::to_string(traits_.vector_bytes * 8));
  llvm::BasicBlock* entry = new_block("entry");
  llvm::BasicBlock* start = new_block("start");
  b_.SetInsertPoint(entry);
  // Allocas first, then what belongs to the outermost scope.
  llvm::BranchInst* leave = b_.CreateBr(start);
  b_.SetInsertPoint(leave);
  f_.alloca_point = b_.CreateAlloca(b_.getInt8Ty(), nullptr, "marker");
  Scope scope;
  scope.insert_before = leave;
  f_.scopes.push_back(std::move(scope));
  b_.SetInsertPoint(start);
}

void Emitter::end_function() {
  b_.CreateRetVoid();
  f_.alloca_point->eraseFromParent();
  // The blocks that separate scopes from bodies have served.
  for (llvm::BasicBlock& block : llvm::make_early_inc_range(*f_.function))
    llvm::MergeBlockIntoPredecessor(&block);
}

void Emitter::run() {
  make_alias_scopes();
  llvm::Type* pointer = b_.getPtrTy();
  auto* function = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer}, false),
                                          llvm::GlobalValue::ExternalLinkage, options_.symbol, module_);
  begin_function(function);
  f_.context = function->getArg(0);
  Value* buffers = function->getArg(1);
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(f_.scopes.front().insert_before);
    int64_t offset = 0;
    const auto parameter = [&](const ir::Buffer& buffer, bool read_only) {
      BufferInfo info;
      info.base = load_field(buffers, offset, pointer, kBufferAlignment);
      info.base->setName(buffer->name);
      info.elements = buffer->allocation_elements();
      info.strides = buffer->effective_strides();
      info.id = buffer_ids_.at(buffer.get());
      info.instance = instances_++;
      info.read_only = read_only;
      offset += kPointerBytes;
      f_.buffers.try_emplace(buffer.get(), info);
    };
    for (const ir::Buffer& buffer : program_.inputs) parameter(buffer, true);
    for (const ir::Buffer& buffer : program_.outputs) parameter(buffer, false);
    f_.shared_workspace = load_field(f_.context, ContextOffsets::kSharedWorkspace, pointer, kBufferAlignment);
  }
  emit(program_.body);
  end_function();
  export_info();
}

// The demands of the kernel (runtime/kernel_abi.h), for whoever loads the object.
void Emitter::export_info() {
  const std::vector<int64_t> demands = demands_of(program_, shared_bytes_, thread_bytes_);
  const std::vector<uint64_t> fields(demands.begin(), demands.end());
  llvm::Constant* value = llvm::ConstantDataArray::get(context_, fields);
  new llvm::GlobalVariable(module_, value->getType(), /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage,
                           value, options_.symbol + TENSORSMITH_INFO_SUFFIX);
}

}  // namespace tensorsmith::codegen
