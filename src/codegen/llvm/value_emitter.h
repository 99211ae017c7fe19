// Values: their types, storage formats, casts, and arithmetic on scalars and lane vectors. The
// emitted code depends only on the operands.
#pragma once

#include "codegen/llvm/emit_context.h"

namespace tensorsmith::codegen {

class ValueEmitter {
 public:
  explicit ValueEmitter(EmitContext& context) : context_(context), b_(context.builder) {}

  // --- types.cc
  llvm::Type* compute_type(ir::DType dtype) const;
  llvm::Type* memory_type(ir::DType dtype) const;
  llvm::Type* with_lanes(llvm::Type* scalar) const;  // a vector with one element per lane
  // Returns the scalar type in the shape (scalar or vector) of `shape`.
  static llvm::Type* like(llvm::Type* scalar, llvm::Type* shape);
  llvm::Value* to_memory(ir::DType dtype, llvm::Value* v);
  llvm::Value* from_memory(ir::DType dtype, llvm::Value* v);
  llvm::Value* convert(ir::DType from, ir::DType to, llvm::Value* v);
  // Rounds a float to f16 or bf16 precision; other dtypes are left alone.
  llvm::Value* round_to(ir::DType dtype, llvm::Value* v);

  // --- arithmetic.cc
  llvm::Value* arithmetic(ir::BinaryOp op, ir::DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* integer_division(ir::BinaryOp op, bool is_signed, llvm::Value* a, llvm::Value* b);
  llvm::Value* comparison(ir::BinaryOp op, ir::DType dtype, llvm::Value* a, llvm::Value* b);
  static bool is_number(const llvm::Value* v);  // a constant that is not NaN
  llvm::Value* broadcast(Val v);
  // Broadcasts one operand if only the other is a vector; returns true if they are vectors.
  bool unify(Val& a, Val& b);

 private:
  llvm::Type* machine_type(ir::DType dtype) const;
  llvm::Value* f32_to_f16_bits(llvm::Value* v);
  llvm::Value* f16_bits_to_f32(llvm::Value* v);
  llvm::Value* f32_to_bf16_bits(llvm::Value* v);
  llvm::Value* extremum(ir::BinaryOp op, ir::DType dtype, llvm::Value* a, llvm::Value* b);

  EmitContext& context_;
  llvm::IRBuilder<>& b_;
};

}  // namespace tensorsmith::codegen
