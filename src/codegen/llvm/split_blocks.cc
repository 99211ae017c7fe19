#include "codegen/llvm/split_blocks.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/Metadata.h>

#include <vector>

namespace tensorsmith::codegen {
namespace {

constexpr const char* kMark = "tensorsmith.block";

class SplitBlocks final : public llvm::FunctionPass {
 public:
  static char id;
  SplitBlocks() : FunctionPass(id) {}

  bool runOnFunction(llvm::Function& function) override {
    const unsigned mark = function.getContext().getMDKindID(kMark);
    std::vector<llvm::Instruction*> starts;
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& instruction : block)
        if (instruction.getMetadata(mark) != nullptr && &instruction != &block.front())
          starts.push_back(&instruction);
    for (llvm::Instruction* start : starts) start->getParent()->splitBasicBlock(start);
    return !starts.empty();
  }
};

char SplitBlocks::id = 0;

}  // namespace

void begin_block_at(llvm::Instruction& instruction) {
  llvm::LLVMContext& context = instruction.getContext();
  instruction.setMetadata(kMark, llvm::MDNode::get(context, {}));
}

llvm::FunctionPass* create_split_blocks_pass() { return new SplitBlocks; }

}  // namespace tensorsmith::codegen
