// Splits long basic blocks for instruction selection. Internal to this directory.
#pragma once

#include <llvm/IR/Instruction.h>
#include <llvm/Pass.h>

namespace tensorsmith::codegen {

// Requests a new block that begins with the instruction, which must not be a phi.
void begin_block_at(llvm::Instruction& instruction);

// Splits blocks where begin_block_at has requested it. Instruction selection works on one block at
// a time and combines each shuffle with those that feed it, over many levels. For a transposition
// this takes more than linear time and gives worse shuffles. The pass runs right before instruction
// selection, because earlier passes merge blocks.
llvm::FunctionPass* create_split_blocks_pass();

}  // namespace tensorsmith::codegen
