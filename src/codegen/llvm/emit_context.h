// State that all parts of the emitter share: values, the machine, the insertion point, and the
// conditions under which code is emitted.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

#include "ir/affine_sum.h"
#include "ir/bounds.h"
#include "ir/expr_memo.h"
#include "sched/matrix_units.h"

namespace tensorsmith::codegen {

// Properties of the machine that the emitter depends on.
struct TargetTraits {
  int vector_bytes = 16;
  int vector_registers = 16;
  int64_t l2_bytes = 0;
  bool fma = false;             // scalar and vector fused multiply-add instructions
  bool half_convert = false;    // f16 <-> f32 instructions
  bool mask_registers = false;  // vector comparisons return mask registers, not vectors
  bool masked_memory = false;   // contiguous masked accesses cost as much as plain ones
  bool dot4 = false;            // vpdpbusd for every vector up to vector_bytes
  bool dot2 = false;            // vdpbf16ps and vcvtneps2bf16 for every vector up to vector_bytes
  sched::MatrixUnits matrix;
  bool multiply_add_u8 = false;  // pmaddubsw: products of u8 and i8 pairs, added with saturation to i16
  int multiply_add_bytes = 0;    // widest vectors of pmaddwd, which adds pairs of 16-bit products; 0: not
                                 // available
};

// A value of one expression. A uniform value (the same in all lanes) is a scalar; otherwise value is a vector
// with one element a lane. f16 and bf16 are held as float, bool as i1.
struct Val {
  llvm::Value* value = nullptr;
  bool uniform = true;
};

// An i64 scalar that index arithmetic treats as opaque.
struct Atom {
  llvm::Value* value = nullptr;
  int depth = 0;  // scope that defines it, or kHere
  int id = 0;     // order of creation
  ir::Interval range;
  // The atom is floor(whole / divisor), modulo `modulus` unless that is 0: a digit of the variable
  // of a fused loop.
  const Atom* whole = nullptr;
  int64_t divisor = 1, modulus = 0;
};
// Depth of values that are computed at the insertion point and are valid only for the expression
// under evaluation.
constexpr int kHere = 1 << 20;

// constant + sum(coefficient * atom) + lane * (lane number) + vector, modulo 2^64.
struct Affine : ir::AffineSum<const Atom*, llvm::SmallVector<ir::AffineTerm<const Atom*>, 4>> {
  int64_t lane = 0;
  llvm::Value* vector = nullptr;  // <lanes x i64>, or null

  static Affine of(int64_t constant) {
    Affine a;
    a.constant = constant;
    return a;
  }
  bool is_constant() const { return lane == 0 && terms.empty() && vector == nullptr; }
  bool uniform() const { return lane == 0 && vector == nullptr; }
};

// Values of shared expressions of the statement under emission, as far as they are defined at the
// insertion point.
struct Evaluated {
  ir::ExprMemo<Val> values;
  ir::ExprMemo<Affine> indices;
};
// Forgets on destruction the values evaluated since its construction, for code under a guard or a
// mask or in a block that is left.
class EvaluationScope {
 public:
  explicit EvaluationScope(Evaluated& evaluated)
      : evaluated_(evaluated), values_(evaluated.values.mark()), indices_(evaluated.indices.mark()) {}
  ~EvaluationScope() {
    evaluated_.values.rollback(values_);
    evaluated_.indices.rollback(indices_);
  }
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;

 private:
  Evaluated& evaluated_;
  size_t values_, indices_;
};

struct EmitContext {
  EmitContext(const TargetTraits& target, llvm::LLVMContext& context) : traits(target), builder(context) {}

  // Creates a block in the function under emission.
  llvm::BasicBlock* new_block(const char* name) {
    return llvm::BasicBlock::Create(builder.getContext(), name, builder.GetInsertBlock()->getParent());
  }

  const TargetTraits traits;
  llvm::IRBuilder<> builder;
  int lanes = 1;
  llvm::Value* mask = nullptr;   // <lanes x i1>, null = all lanes are active
  llvm::Value* guard = nullptr;  // uniform i1: loads may only be executed where it is true; null = true
  Evaluated evaluated;
};

}  // namespace tensorsmith::codegen
