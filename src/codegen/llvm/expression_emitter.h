// Emits expressions: every node of ir::Expr becomes a value, and shared nodes are evaluated once.
#pragma once

#include <optional>

#include "codegen/llvm/dot.h"
#include "codegen/llvm/index_emitter.h"
#include "codegen/llvm/memory_emitter.h"

namespace tensorsmith::codegen {

class ExpressionEmitter {
 public:
  // With `contract`, a * b + c may become a fused multiply-add.
  ExpressionEmitter(EmitContext& context, ValueEmitter& values, IndexEmitter& indices, MemoryEmitter& memory,
                    bool contract)
      : context_(context),
        values_(values),
        indices_(indices),
        memory_(memory),
        dots_(context, values),
        b_(context.builder),
        contract_(contract) {}

  Val eval(const ir::Expr& e);
  // Evaluates as above, but does not use index arithmetic for the expression itself.
  Val eval_generic(const ir::Expr& e);
  // The condition is uniform && lanes; null means true.
  struct Condition {
    llvm::Value* uniform = nullptr;
    llvm::Value* lanes = nullptr;
    bool never = false;
  };
  // Splits a condition's conjuncts into the uniform ones and those that differ between lanes.
  Condition eval_condition(const ir::Expr& e);

 private:
  Val eval_node(const ir::Expr& e);
  Val eval_unary(ir::DType dtype, ir::UnaryOp op, const ir::Expr& a);
  Val eval_binary(ir::DType dtype, const ir::Binary& op);
  Val eval_select(const ir::Select& outer);
  Val eval_branch(llvm::Value* condition, const ir::Expr& a, const ir::Expr& b);
  Val eval_call(ir::DType dtype, const ir::Call& call);
  std::optional<Val> try_fma(ir::DType dtype, const ir::Binary& op);
  std::optional<Val> try_logistic(ir::DType dtype, const ir::Binary& op);
  std::optional<Val> try_exp_or_zero(const ir::Select& select);

  // --- packed.cc
  std::optional<Val> try_dot(const ir::Binary& op);
  std::optional<Val> try_word(const ir::Binary& op);
  Val eval_dot(const ir::Call& call, const Val* sum);
  Val eval_pair(const ir::Call& call);

  EmitContext& context_;
  ValueEmitter& values_;
  IndexEmitter& indices_;
  MemoryEmitter& memory_;
  DotEmitter dots_;
  llvm::IRBuilder<>& b_;
  const bool contract_;
};

}  // namespace tensorsmith::codegen
