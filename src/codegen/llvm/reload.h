// Values that are loaded again instead of being kept in registers. Internal to the room.
#pragma once

#include <llvm/IR/Function.h>

namespace tensorsmith::codegen {

struct RegisterFile {
  int registers = 16;  // for vectors
  int bytes = 16;      // of each
};

// Where more vectors are live than there are registers, vectors that come straight from memory (loaded, or an
// element in all lanes) are loaded again at their uses, those with the furthest next use first (Belady).
//
// Unrolled windows read an element in several steps, and equal loads have been made one; loads of a loop that do not
// change in it have been moved out of it. LLVM's register allocator knows no loads that could be repeated: it stores
// such vectors to the stack, or accumulators in their place. A load that is repeated is an operand of the
// instruction that uses it, and reads one element where a spilled one reads a vector.
//
// Loads that may cross cache lines stay as they are: a spilled vector is aligned.
//
// Expects equal loads to be one, each value in front of its first use, and no scheduler behind it.
void reload_instead_of_spill(llvm::Function& function, const RegisterFile& file);

}  // namespace tensorsmith::codegen
