// Long basic blocks in pieces, for instruction selection. Internal to the room.
#pragma once

#include <llvm/IR/Instruction.h>
#include <llvm/Pass.h>

namespace tensorsmith::codegen {

// Asks for a new block that begins with the instruction, which is no phi.
void begin_block_at(llvm::Instruction& instruction);

// Splits blocks where begin_block_at asks for it. Instruction selection works on one block at a time and
// looks at each shuffle together with those that it shuffles, over many levels: a transposition costs more
// than linear time, and what is made of its shuffles is worse than they are. Runs right before instruction
// selection, because earlier passes merge blocks.
llvm::FunctionPass* create_split_blocks_pass();

}  // namespace tensorsmith::codegen
