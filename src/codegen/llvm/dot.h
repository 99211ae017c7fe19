// Dot products of packed elements: the products of four bytes (dot4), two bf16 elements (dot2) or two i16 (dot2i16),
// added to each 32-bit lane.
#pragma once

#include "codegen/llvm/value_emitter.h"

namespace tensorsmith::codegen {

class DotEmitter {
 public:
  DotEmitter(EmitContext& context, ValueEmitter& values)
      : context_(context), values_(values), b_(context.builder) {}

  // Returns sum (null: 0) + the products of the packed elements of a and b. Vectors are processed
  // in pieces of a register's size. `kind` satisfies ir::is_dot.
  Val dot(ir::Intrinsic kind, const Val& a, const Val& b, const Val* sum);

 private:
  llvm::Value* chunk(ir::Intrinsic kind, llvm::Value* sum, llvm::Value* a, llvm::Value* b);
  llvm::Value* dot4_chunk(llvm::Value* sum, llvm::Value* a, llvm::Value* b);
  llvm::Value* dot4_narrow_chunk(llvm::Value* sum, llvm::Value* a, llvm::Value* b);
  llvm::Value* dot2_i16_chunk(llvm::Value* sum, llvm::Value* a, llvm::Value* b);
  llvm::Value* multiply_add(llvm::Value* a, llvm::Value* b);
  llvm::Value* dot2_chunk(llvm::Value* sum, llvm::Value* a, llvm::Value* b);

  EmitContext& context_;
  ValueEmitter& values_;
  llvm::IRBuilder<>& b_;
};

}  // namespace tensorsmith::codegen
