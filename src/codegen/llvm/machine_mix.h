// Counts the machine instructions of each block in assembly text. Internal to this directory.
#pragma once

#include <string_view>
#include <vector>

#include "codegen/traced.h"

namespace tensorsmith::codegen {

// `text` is x86-64 assembly with LLVM's comments, whose blocks were named
// (codegen/llvm/trace_accesses.h). Blocks that code generation has added count for the preceding
// block in the text.
std::vector<MachineMix> machine_mixes(std::string_view text, size_t blocks);

}  // namespace tensorsmith::codegen
