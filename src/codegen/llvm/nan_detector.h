// Looks for NaN among values that code computes, with few instructions a value.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>

#include <map>
#include <vector>

#include "codegen/llvm/emit_context.h"

namespace tensorsmith::codegen {

class NanDetector {
 public:
  // What has been seen is kept in allocas, at alloca_point, and set to nothing before `begin`.
  NanDetector(EmitContext& context, llvm::Instruction* alloca_point, llvm::Instruction* begin)
      : context_(context), b_(context.builder), alloca_point_(alloca_point), begin_(begin) {}

  // x: a float or double, or a vector of them.
  void look_at(llvm::Value* x);
  // Whether there was a NaN among the values looked at; null if none of them can be one.
  llvm::Value* seen();

 private:
  // What has been seen of values of a type.
  struct Seen {
    llvm::Type* type = nullptr;
    size_t number = 0;
    llvm::Type* content = nullptr;
    llvm::AllocaInst* place = nullptr;
  };
  struct Unpaired {
    llvm::Value* value = nullptr;
    std::vector<llvm::Instruction*> made;  // for it, users first
  };
  Seen place_for(llvm::Type* type, size_t number);

  EmitContext& context_;
  llvm::IRBuilder<>& b_;
  llvm::Instruction* const alloca_point_;
  llvm::Instruction* const begin_;
  std::vector<Seen> seen_;
  size_t comparisons_ = 0;
  llvm::BasicBlock* block_ = nullptr;              // of values looked at last
  llvm::SmallPtrSet<llvm::Value*, 16> looked_at_;  // in that block
  std::map<llvm::Type*, Unpaired> unpaired_;       // a value of that block compared with itself
};

}  // namespace tensorsmith::codegen
