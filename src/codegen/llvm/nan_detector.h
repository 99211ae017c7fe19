// Detects NaN among values that code computes, with few instructions per value.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>

#include <map>
#include <vector>

#include "codegen/llvm/emit_context.h"

namespace tensorsmith::codegen {

class NanDetector {
 public:
  // The accumulated results are kept in allocas at alloca_point, which are initialized before
  // `begin`.
  NanDetector(EmitContext& context, llvm::Instruction* alloca_point, llvm::Instruction* begin)
      : context_(context), b_(context.builder), alloca_point_(alloca_point), begin_(begin) {}

  // Adds x, a float, a double or a vector of them, to the checked values.
  void look_at(llvm::Value* x);
  // Returns whether a NaN was among the checked values; null if none of them can be one.
  llvm::Value* seen();

 private:
  // Accumulated results for values of a type.
  struct Seen {
    llvm::Type* type = nullptr;
    size_t number = 0;
    llvm::Type* content = nullptr;
    llvm::AllocaInst* place = nullptr;
  };
  struct Unpaired {
    llvm::Value* value = nullptr;
    std::vector<llvm::Instruction*> made;  // instructions for the value, users first
  };
  Seen place_for(llvm::Type* type, size_t number);

  EmitContext& context_;
  llvm::IRBuilder<>& b_;
  llvm::Instruction* const alloca_point_;
  llvm::Instruction* const begin_;
  std::vector<Seen> seen_;
  size_t comparisons_ = 0;
  llvm::BasicBlock* block_ = nullptr;              // block of the last checked values
  llvm::SmallPtrSet<llvm::Value*, 16> looked_at_;  // values checked in that block
  std::map<llvm::Type*, Unpaired> unpaired_;       // a value of that block that was compared with itself
};

}  // namespace tensorsmith::codegen
