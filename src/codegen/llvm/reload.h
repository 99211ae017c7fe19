// Reloads values instead of keeping them in registers. Internal to this directory.
#pragma once

#include <llvm/IR/Function.h>

namespace tensorsmith::codegen {

struct RegisterFile {
  int registers = 16;  // number of vector registers
  int bytes = 16;      // size of each register
};

// Where more vectors are live than there are registers, vectors that come straight from memory
// (loaded or broadcast elements) are loaded again at their uses. Those with the furthest next use
// are reloaded first (Belady).
//
// Unrolled windows read an element in several steps, and equal loads have been merged; invariant
// loads have been hoisted out of loops. LLVM's register allocator cannot repeat loads: it spills
// such vectors, or accumulators in their place. A repeated load becomes a memory operand of the
// instruction that uses it, and a broadcast reads one element where a reload of a spilled register
// reads a whole vector.
//
// Loads that may cross cache lines are not repeated: a spilled vector is aligned.
//
// Requires that equal loads have been merged and that each value is defined just before its first
// use. No scheduler may run afterwards.
void reload_instead_of_spill(llvm::Function& function, const RegisterFile& file);

}  // namespace tensorsmith::codegen
