// Machine instructions by block, from assembly text. Internal to the room.
#pragma once

#include <string_view>
#include <vector>

#include "codegen/traced.h"

namespace tensorsmith::codegen {

// text: of x86-64 with LLVM's comments, whose blocks are named (codegen/llvm/trace_accesses.h). Blocks that code
// generation adds count as the one before them in the text.
std::vector<MachineMix> machine_mixes(std::string_view text, size_t blocks);

}  // namespace tensorsmith::codegen
