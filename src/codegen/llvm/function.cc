// Emits functions: prologues and epilogues, access to the kernel's buffers, and the kernel's
// demands.
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "codegen/launch.h"
#include "codegen/llvm/statement_emitter.h"

namespace tensorsmith::codegen {

using llvm::Value;

StatementEmitter::StatementEmitter(const ir::Program& program, const TargetTraits& traits,
                                   const CodegenOptions& options, llvm::Module& module)
    : program_(program),
      options_(options),
      module_(module),
      parts_(program),
      decisions_(program, traits.vector_registers),
      context_(traits, module.getContext()),
      values_(context_),
      indices_(context_, values_, [this](const ir::Expr& e) { return expressions_.eval_generic(e); }),
      memory_(context_, values_, indices_, program),
      expressions_(context_, values_, indices_, memory_, options.fast_math_contract),
      b_(context_.builder) {}

// Loads a member of the context, of the buffer list or of a closure; these do not change while a
// kernel runs.
Value* StatementEmitter::load_field(Value* base, int64_t offset, llvm::Type* type, int64_t align_of_pointee) {
  Value* address = b_.CreateGEP(b_.getInt8Ty(), base, b_.getInt64(offset));
  llvm::LoadInst* v = b_.CreateAlignedLoad(type, address, llvm::Align(8));
  v->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
  if (align_of_pointee > 0) {
    v->setMetadata(
        llvm::LLVMContext::MD_align,
        llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt64(align_of_pointee))));
  }
  return v;
}

void StatementEmitter::begin_function(llvm::Function* function) {
  f_.function = function;
  function->setDoesNotThrow();
  function->addFnAttr("prefer-vector-width", std::to_string(context_.traits.vector_bytes * 8));
  function->addFnAttr("min-legal-vector-width", std::to_string(context_.traits.vector_bytes * 8));
  // The ABI aligns stacks to 16 bytes only, and LLVM does not align them further for spilled
  // vectors. Whether wide vectors cross cache lines would then depend on where the caller's stack
  // ends.
  if (context_.traits.vector_bytes > 16) {
    const llvm::Align alignment(context_.traits.vector_bytes);
    function->addFnAttr(llvm::Attribute::getWithStackAlignment(b_.getContext(), alignment));
  }
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(b_.getContext(), "entry", function);
  llvm::BasicBlock* start = llvm::BasicBlock::Create(b_.getContext(), "start", function);
  b_.SetInsertPoint(entry);
  // The entry block contains the allocas, then the values of the outermost scope.
  llvm::BranchInst* leave = b_.CreateBr(start);
  b_.SetInsertPoint(leave);
  f_.alloca_point = b_.CreateAlloca(b_.getInt8Ty(), nullptr, "marker");
  indices_.open_scope(leave);
  b_.SetInsertPoint(start);
}

void StatementEmitter::end_function() {
  if (!f_.tile_shapes.empty()) b_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
  b_.CreateRetVoid();
  f_.alloca_point->eraseFromParent();
  // The blocks that separated scopes from bodies are no longer needed.
  for (llvm::BasicBlock& block : llvm::make_early_inc_range(*f_.function))
    llvm::MergeBlockIntoPredecessor(&block);
  // Loaded values are keyed by their block, and a new block may reuse the address of a merged one.
  memory_.forget();
}

void StatementEmitter::run() {
  llvm::Type* pointer = b_.getPtrTy();
  auto* function = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer}, false),
                                          llvm::GlobalValue::ExternalLinkage, options_.symbol, module_);
  begin_function(function);
  f_.context = function->getArg(0);
  Value* buffers = function->getArg(1);
  {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(indices_.outermost());
    int64_t offset = 0;
    const auto parameter = [&](const ir::Buffer& buffer, MemoryEmitter::Storage storage) {
      Value* base =
          load_field(buffers, std::exchange(offset, offset + kPointerBytes), pointer, kBufferAlignment);
      base->setName(buffer->name);
      memory_.declare(buffer, base, storage);
    };
    for (const ir::Buffer& buffer : program_.inputs) parameter(buffer, MemoryEmitter::Storage::kInput);
    for (const ir::Buffer& buffer : program_.outputs) parameter(buffer, MemoryEmitter::Storage::kOutput);
    f_.shared_workspace = load_field(f_.context, ContextOffsets::kSharedWorkspace, pointer, kBufferAlignment);
  }
  emit(program_.body);
  end_function();
  export_info();
}

// Exports the demands of the kernel (runtime/kernel_abi.h) for whoever loads the object.
void StatementEmitter::export_info() {
  const std::vector<int64_t> demands = demands_of(program_, shared_bytes_, thread_bytes_);
  const std::vector<uint64_t> fields(demands.begin(), demands.end());
  llvm::Constant* value = llvm::ConstantDataArray::get(b_.getContext(), fields);
  new llvm::GlobalVariable(module_, value->getType(), /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage,
                           value, options_.symbol + TENSORSMITH_INFO_SUFFIX);
}

}  // namespace tensorsmith::codegen
